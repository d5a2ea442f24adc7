/*
 * Processes and threads as in ps(1): curpsinfo and curlwpsinfo. The members are those of FreeBSD's psinfo.d, and
 * those that illumos' toolkit scripts name: pr_fname, pr_clname, and of what no FreeBSD has pr_projid and pr_zoneid:
 * 0, as on an illumos without projects and zones.
 */

#pragma D depends_on module kernel
#pragma D depends_on library pstypes.d

translator psinfo_t < struct proc *P > {
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
	pr_fname = stringof(P->p_comm);
	pr_psargs = P->p_args && P->p_args->ar_length ? memstr(P->p_args->ar_args, ' ', P->p_args->ar_length) :
	    stringof(P->p_comm);
	pr_arglen = P->p_args ? P->p_args->ar_length : 0;
	pr_projid = 0;
	pr_zoneid = 0;
	pr_jailid = P->p_ucred->cr_prison->pr_id;
	pr_jailname = stringof(P->p_ucred->cr_prison->pr_name);
};

translator lwpsinfo_t < struct thread *T > {
	pr_flag = T->td_flags;
	pr_lwpid = T->td_tid;
	pr_addr = (uintptr_t)T;
	pr_wchan = (uintptr_t)T->td_wchan;
	pr_pri = 0; /* there is one */
	pr_state = T->td_state;
	pr_sname = T->td_state == TDS_RUNNING ? 'O' : T->td_state == TDS_RUNQ ? 'R' :
	    T->td_state == TDS_INHIBITED ? 'S' : 'I';
	pr_syscall = T->td_sa.code;
	pr_clname = "RR";
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread->td_proc);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
inline string threadname = stringof(curthread->td_name);
