/* Signals of FreeBSD (sys/signal.h), and the reasons of a child's change. */

inline int SIGHUP = 1;
inline int SIGINT = 2;
inline int SIGQUIT = 3;
inline int SIGILL = 4;
inline int SIGTRAP = 5;
inline int SIGABRT = 6;
inline int SIGIOT = 6;
inline int SIGEMT = 7;
inline int SIGFPE = 8;
inline int SIGKILL = 9;
inline int SIGBUS = 10;
inline int SIGSEGV = 11;
inline int SIGSYS = 12;
inline int SIGPIPE = 13;
inline int SIGALRM = 14;
inline int SIGTERM = 15;
inline int SIGURG = 16;
inline int SIGSTOP = 17;
inline int SIGTSTP = 18;
inline int SIGCONT = 19;
inline int SIGCHLD = 20;
inline int SIGTTIN = 21;
inline int SIGTTOU = 22;
inline int SIGIO = 23;
inline int SIGXCPU = 24;
inline int SIGXFSZ = 25;
inline int SIGVTALRM = 26;
inline int SIGPROF = 27;
inline int SIGWINCH = 28;
inline int SIGINFO = 29;
inline int SIGUSR1 = 30;
inline int SIGUSR2 = 31;
inline int SIGLWP = 32;
inline int SIGTHR = 32;
inline int SIGLIBRT = 33;

inline int CLD_EXITED = 1;
inline int CLD_KILLED = 2;
inline int CLD_DUMPED = 3;
inline int CLD_TRAPPED = 4;
inline int CLD_STOPPED = 5;
inline int CLD_CONTINUED = 6;

/* Their names (FreeBSD cddl/lib/libdtrace/signal.d). */
inline string signal_string[int signal] =
    signal == SIGHUP ? "SIGHUP" :
    signal == SIGINT ? "SIGINT" :
    signal == SIGQUIT ? "SIGQUIT" :
    signal == SIGILL ? "SIGILL" :
    signal == SIGTRAP ? "SIGTRAP" :
    signal == SIGABRT ? "SIGABRT" :
    signal == SIGEMT ? "SIGEMT" :
    signal == SIGFPE ? "SIGFPE" :
    signal == SIGKILL ? "SIGKILL" :
    signal == SIGBUS ? "SIGBUS" :
    signal == SIGSEGV ? "SIGSEGV" :
    signal == SIGSYS ? "SIGSYS" :
    signal == SIGPIPE ? "SIGPIPE" :
    signal == SIGALRM ? "SIGALRM" :
    signal == SIGTERM ? "SIGTERM" :
    signal == SIGURG ? "SIGURG" :
    signal == SIGSTOP ? "SIGSTOP" :
    signal == SIGTSTP ? "SIGTSTP" :
    signal == SIGCONT ? "SIGCONT" :
    signal == SIGCHLD ? "SIGCHLD" :
    signal == SIGTTIN ? "SIGTTIN" :
    signal == SIGTTOU ? "SIGTTOU" :
    signal == SIGIO ? "SIGIO" :
    signal == SIGXCPU ? "SIGXCPU" :
    signal == SIGXFSZ ? "SIGXFSZ" :
    signal == SIGVTALRM ? "SIGVTALRM" :
    signal == SIGPROF ? "SIGPROF" :
    signal == SIGWINCH ? "SIGWINCH" :
    signal == SIGINFO ? "SIGINFO" :
    signal == SIGUSR1 ? "SIGUSR1" :
    signal == SIGUSR2 ? "SIGUSR2" :
    signal == SIGTHR ? "SIGTHR" :
    signal == SIGLIBRT ? "SIGLIBRT" :
    "UNKNOWN";

inline string child_signal_string[int child_signal] =
    child_signal == CLD_EXITED ? "child exited" :
    child_signal == CLD_KILLED ? "child terminated abnormally" :
    child_signal == CLD_DUMPED ? "child core dumped" :
    child_signal == CLD_TRAPPED ? "traced child trapped" :
    child_signal == CLD_STOPPED ? "child stopped" :
    child_signal == CLD_CONTINUED ? "stopped child continued" :
    strjoin("unknown SIGCHLD code (", strjoin(lltostr(child_signal), ")"));
