/*
 * The types of curpsinfo and curlwpsinfo. Each guest has its own translators to them: a member that a guest's translator
 * leaves out cannot be used there.
 */

typedef struct timestruc {
	long tv_sec;
	long tv_nsec;
} timestruc_t;

inline char PR_MODEL_UNKNOWN = 0;
inline char PR_MODEL_ILP32 = 1;
inline char PR_MODEL_LP64 = 2;

typedef struct psinfo {
	int pr_flag;		/* P_* */
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
	size_t pr_size;		/* KiB mapped */
	size_t pr_rssize;	/* KiB that are there */
	size_t pr_pad1;
	int pr_ttydev;		/* its terminal; -1: there is none */
	ushort_t pr_pctcpu;	/* its part of the time since it began; 0x8000 is all of it */
	ushort_t pr_pctmem;
	timestruc_t pr_start;
	timestruc_t pr_time;
	timestruc_t pr_ctime;
	string pr_fname;	/* name of the program */
	string pr_psargs;	/* its arguments, with blanks between them */
	uint_t pr_arglen;
	int pr_wstat;		/* exit value */
	int pr_argc;
	uintptr_t pr_argv;	/* in the memory of the process */
	uintptr_t pr_envp;
	char pr_dmodel;		/* PR_MODEL_* */
	int pr_taskid;
	int pr_projid;
	int pr_nzomb;
	int pr_poolid;
	int pr_zoneid;
	int pr_contract;
	int pr_nice;
	int pr_jailid;
	string pr_jailname;
} psinfo_t;

typedef struct lwpsinfo {
	int pr_flag;		/* TDF_* */
	id_t pr_lwpid;
	uintptr_t pr_addr;	/* of the thread in the kernel */
	uintptr_t pr_wchan;	/* what it sleeps on */
	char pr_stype;
	char pr_state;
	char pr_sname;		/* the state as a letter */
	char pr_nice;
	short pr_syscall;	/* the one under way */
	char pr_oldpri;
	char pr_cpu;
	int pr_pri;
	ushort_t pr_pctcpu;
	timestruc_t pr_start;
	timestruc_t pr_time;
	string pr_clname;	/* class of the scheduler */
	string pr_name;
	int pr_onpro;		/* the CPU it runs on */
	int pr_bindpro;		/* the CPU it is bound to; -1: none */
	int pr_bindpset;
	int pr_lgrp;
} lwpsinfo_t;
