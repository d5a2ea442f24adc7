/* Processes and threads of a Linux kernel as ps(1) knows them: curpsinfo and curlwpsinfo. */

#pragma D depends_on module kernel
#pragma D depends_on library pstypes.d

/* Of struct pid: enum pid_type (linux/pid_types.h). */
inline int __pgid = 2;
inline int __sid = 3;

/* Pages that a CPU has not added yet are missing in pr_rssize. */
translator psinfo_t < struct task_struct *T > {
	pr_flag = T->flags;
	pr_nlwp = T->signal->nr_threads;
	pr_pid = T->tgid;
	pr_ppid = T->real_parent ? T->real_parent->tgid : 0;
	pr_pgid = T->signal->pids[__pgid] ? T->signal->pids[__pgid]->numbers[0].nr : 0;
	pr_sid = T->signal->pids[__sid] ? T->signal->pids[__sid]->numbers[0].nr : 0;
	pr_uid = T->cred->uid.val;
	pr_euid = T->cred->euid.val;
	pr_gid = T->cred->gid.val;
	pr_egid = T->cred->egid.val;
	pr_addr = (uintptr_t)T;
	pr_size = T->mm ? T->mm->total_vm * 4 : 0; /* pages of 4 KiB */
	pr_rssize = T->mm ? (T->mm->rss_stat[0].count + T->mm->rss_stat[1].count + T->mm->rss_stat[3].count) * 4 : 0;
	pr_ttydev = T->signal->tty ? T->signal->tty->index : -1;
	pr_fname = stringof(T->comm);
	pr_psargs = T == curthread ? execargs : stringof(T->comm); /* the arguments are in the memory of the process */
	pr_arglen = T->mm ? T->mm->arg_end - T->mm->arg_start : 0;
	pr_wstat = T->exit_code;
	pr_argv = T->mm ? T->mm->arg_start : 0;
	pr_envp = T->mm ? T->mm->env_start : 0;
	pr_dmodel = PR_MODEL_LP64;
	pr_nice = T->static_prio - 120;
};

/* States: TASK_* (linux/sched.h). */
translator lwpsinfo_t < struct task_struct *T > {
	pr_flag = T->flags;
	pr_lwpid = T->pid;
	pr_addr = (uintptr_t)T;
	pr_state = T->__state & 0xff;
	pr_sname = T->__state == 0 ? (T->on_cpu ? 'O' : 'R') : T->__state & 1 ? 'S' : T->__state & 2 ? 'D' :
	    T->__state & 0xc ? 'T' : T->exit_state ? 'Z' : 'I';
	pr_nice = T->static_prio - 120;
	pr_cpu = cpu;
	pr_pri = T->prio;
	pr_clname = T->policy == 0 ? "TS" : T->policy == 1 || T->policy == 2 ? "RT" : "SYS";
	pr_name = stringof(T->comm);
	pr_onpro = cpu;
};

inline psinfo_t *curpsinfo = xlate <psinfo_t *> (curthread);
inline lwpsinfo_t *curlwpsinfo = xlate <lwpsinfo_t *> (curthread);
inline string threadname = stringof(curthread->comm);
