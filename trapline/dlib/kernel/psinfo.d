/* Processes and threads as ps(1) knows them: curpsinfo and curlwpsinfo. */

#pragma D depends_on module kernel
#pragma D depends_on library pstypes.d

translator psinfo_t < struct proc *P > {
	pr_nlwp = P->p_numthreads;
	pr_pid = P->p_pid;
	pr_ppid = P->p_pptr ? P->p_pptr->p_pid : 0;
	pr_pgid = P->p_pid;
	pr_sid = P->p_pid;
	pr_uid = P->p_uid;
	pr_euid = P->p_uid;
	pr_gid = P->p_gid;
	pr_egid = P->p_gid;
	pr_addr = (uintptr_t)P;
	pr_fname = stringof(P->p_comm);
	pr_psargs = P->p_args_size ? memstr(P->p_args, ' ', P->p_args_size) : stringof(P->p_comm);
	pr_arglen = P->p_args_size;
};

translator lwpsinfo_t < struct thread *T > {
	pr_lwpid = T->td_tid;
	pr_flag = T->td_flags;
	pr_pri = 0; /* there is one */
	pr_state = T->td_state;
	pr_sname = T->td_state == TDS_RUNNING ? 'O' : T->td_state == TDS_RUNQ ? 'R' :
	    T->td_state == TDS_INHIBITED ? 'S' : 'I';
	pr_syscall = T->td_sa.code;
	pr_addr = (uintptr_t)T;
	pr_wchan = (uintptr_t)T->td_wchan;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread->td_proc);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
inline string threadname = stringof(curthread->td_name);
