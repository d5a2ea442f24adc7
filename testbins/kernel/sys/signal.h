/* Signals: FreeBSD's numbers and structures, as far as they are used. */
#ifndef SYS_SIGNAL_H
#define SYS_SIGNAL_H

#include "sys/types.h"

typedef uint32_t sigset_t; /* bit n - 1 is signal n */

#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGEMT 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGBUS 10
#define SIGSEGV 11
#define SIGSYS 12
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGURG 16
#define SIGSTOP 17
#define SIGCONT 19
#define SIGCHLD 20
#define SIGUSR1 30
#define SIGUSR2 31
#define NSIG 32
#define SIGBIT(sig) (1u << ((sig) - 1))

#define SIG_DFL 0
#define SIG_IGN 1
#define SA_RESTART 0x0002
#define SA_RESETHAND 0x0004
#define SA_NODEFER 0x0010
#define SA_SIGINFO 0x0040

#define SIG_BLOCK 1
#define SIG_UNBLOCK 2
#define SIG_SETMASK 3

#define CLD_EXITED 1 /* why a child ended */
#define CLD_KILLED 2

struct sigaction {
	vaddr_t sa_handler; /* SIG_DFL, SIG_IGN or a user address */
	int sa_flags;
	sigset_t sa_mask;
};

struct siginfo {
	int si_signo;
	int si_code;
	pid_t si_pid;
	uid_t si_uid;
	vaddr_t si_addr;
};

#endif
