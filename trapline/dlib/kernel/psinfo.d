/* Processes and threads as in ps(1): curpsinfo and curlwpsinfo. */

#pragma D depends_on module kernel
#pragma D depends_on library pstypes.d

translator psinfo_t < struct proc *P > {
	pr_flag = P->p_flag;
	pr_nlwp = P->p_numthreads;
	pr_pid = P->p_pid;
	pr_ppid = P->p_pptr ? P->p_pptr->p_pid : 0;
	pr_pgid = P->p_pgrp ? P->p_pgrp->pg_id : 0;
	pr_sid = P->p_pgrp ? P->p_pgrp->pg_session->s_sid : 0;
	pr_uid = P->p_ucred->cr_ruid;
	pr_euid = P->p_ucred->cr_uid;
	pr_gid = P->p_ucred->cr_rgid;
	pr_egid = P->p_ucred->cr_gid;
	pr_addr = (uintptr_t)P;
	pr_size = P->p_vmspace ? P->p_vmspace->vm_size / 1024 : 0;
	pr_rssize = P->p_pmap->pm_resident * 4; /* pages of 4 KiB */
	pr_pad1 = 0;
	pr_ttydev = -1;
	pr_pctcpu = timestamp > P->p_starttime ?
	    P->p_threads->td_runtime * 0x8000 / (timestamp - P->p_starttime) : 0;
	pr_pctmem = 0;
	pr_fname = stringof(P->p_comm);
	pr_psargs = P->p_args && P->p_args->ar_length ? memstr(P->p_args->ar_args, ' ', P->p_args->ar_length) :
	    stringof(P->p_comm);
	pr_arglen = P->p_args ? P->p_args->ar_length : 0;
	pr_wstat = P->p_xexit;
	pr_argc = P->p_psstrings.ps_nargvstr;
	pr_argv = P->p_psstrings.ps_argvstr;
	pr_envp = P->p_psstrings.ps_envstr;
	pr_dmodel = sizeof (uintptr_t) == 8 ? PR_MODEL_LP64 : PR_MODEL_ILP32;
	pr_taskid = 0;
	pr_projid = 0;
	pr_nzomb = 0;
	pr_poolid = 0;
	pr_zoneid = 0;
	pr_contract = 0;
	pr_nice = P->p_nice;
	pr_jailid = 0;
	pr_jailname = "";
};

translator lwpsinfo_t < struct thread *T > {
	pr_flag = T->td_flags;
	pr_lwpid = T->td_tid;
	pr_addr = (uintptr_t)T;
	pr_wchan = (uintptr_t)T->td_wchan;
	pr_stype = 0;
	pr_nice = T->td_proc->p_nice;
	pr_oldpri = 0;
	pr_cpu = 0;
	pr_pri = 0; /* there is one */
	pr_pctcpu = timestamp > T->td_proc->p_starttime ?
	    T->td_runtime * 0x8000 / (timestamp - T->td_proc->p_starttime) : 0;
	pr_state = T->td_state;
	pr_sname = T->td_state == TDS_RUNNING ? 'O' : T->td_state == TDS_RUNQ ? 'R' :
	    T->td_state == TDS_INHIBITED ? 'S' : 'I';
	pr_syscall = T->td_sa.code;
	pr_clname = "RR";
	pr_name = stringof(T->td_name);
	pr_onpro = 0;
	pr_bindpro = -1;
	pr_bindpset = -1;
	pr_lgrp = 0;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread->td_proc);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
inline string threadname = stringof(curthread->td_name);
