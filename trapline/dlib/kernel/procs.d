/* Processes by the names that illumos has for their members, curthread->t_procp->p_parent (threads.d). */

#pragma D depends_on module kernel
#pragma D depends_on library psinfo.d
#pragma D depends_on library types.d

typedef struct user_names {
	char u_comm[20];
	string u_psargs;
	int u_argc;
	uintptr_t u_argv;
	uintptr_t u_envp;
} user_names_t;

translator user_names_t < struct proc *P > {
	u_comm = P->p_comm;
	u_psargs = xlate <psinfo_t *> (P)->pr_psargs;
	u_argc = P->p_psstrings.ps_nargvstr;
	u_argv = P->p_psstrings.ps_argvstr;
	u_envp = P->p_psstrings.ps_envstr;
};

typedef struct proc_names {
	struct proc *p_parent;
	pid_t p_ppid;
	struct vnode *p_exec;
	int p_lwpcnt;
	hrtime_t p_mstart;
	struct proc *p_pidp;
	pid_t pid_id;
	user_names_t p_user;
} proc_names_t;

translator proc_names_t < struct proc *P > {
	p_parent = P->p_pptr;
	p_ppid = P->p_pptr ? P->p_pptr->p_pid : 0;
	p_exec = P->p_textvp;
	p_lwpcnt = P->p_numthreads;
	p_mstart = P->p_starttime;
	p_pidp = P; /* its own structure on illumos, whose pid_id it is */
	pid_id = P->p_pid;
	p_user = *(xlate <user_names_t *> (P));
};
