/* What curpsinfo and curlwpsinfo are. Each guest has its own translators to them. */

typedef struct psinfo {
	int pr_nlwp;		/* threads */
	pid_t pr_pid;
	pid_t pr_ppid;
	pid_t pr_pgid;
	pid_t pr_sid;
	uint_t pr_uid;
	uint_t pr_euid;
	uint_t pr_gid;
	uint_t pr_egid;
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
