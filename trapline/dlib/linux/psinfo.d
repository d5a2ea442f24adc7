/* Processes and threads as ps(1) knows them: curpsinfo and curlwpsinfo, of what the built-in variables tell. */

typedef unsigned int uid_t;
typedef unsigned int gid_t;

typedef struct psinfo {
	int pr_nlwp;		/* threads */
	pid_t pr_pid;
	pid_t pr_ppid;
	pid_t pr_pgid;
	pid_t pr_sid;
	uid_t pr_uid;
	uid_t pr_euid;
	gid_t pr_gid;
	gid_t pr_egid;
	uintptr_t pr_addr;	/* of the process in the kernel */
	string pr_fname;	/* name of the program */
	string pr_psargs;	/* its arguments, with blanks between them */
	uint_t pr_arglen;
} psinfo_t;

typedef struct lwpsinfo {
	id_t pr_lwpid;
	int pr_flag;
	int pr_pri;
	char pr_state;
	char pr_sname;		/* the state as a letter */
	int pr_syscall;		/* the one under way */
	uintptr_t pr_addr;	/* of the thread in the kernel */
	uintptr_t pr_wchan;	/* what it sleeps on */
} lwpsinfo_t;

translator psinfo_t < pid_t P > {
	pr_pid = P;
	pr_ppid = ppid;
	pr_uid = uid;
	pr_euid = uid;
	pr_gid = gid;
	pr_egid = gid;
	pr_fname = execname;
	pr_psargs = execargs;
	pr_arglen = strlen(execargs);
};

translator lwpsinfo_t < id_t T > {
	pr_lwpid = T;
	pr_sname = 'O';
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (pid);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (tid);
