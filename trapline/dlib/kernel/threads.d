/*
 * Threads by the names that illumos has for their members, curthread->t_procp, and by FreeBSD's of several CPUs. A type
 * whose name ends in _names gives its members to the structure that it is translated from.
 */

#pragma D depends_on module kernel

typedef struct kthread_names {
	struct proc *t_procp;
	struct pcpu *t_cpu;
	id_t t_tid;
	id_t t_did;
	int t_pri;
	int t_state;
	struct ucred *td_ucred;
	int td_priority;
	int td_oncpu;
	int td_lastcpu;
	uint32_t td_inhibitors;
} kthread_names_t;

translator kthread_names_t < struct thread *T > {
	t_procp = T->td_proc;
	t_cpu = &`pcpu0; /* at this address each CPU has its own */
	t_tid = T->td_tid;
	t_did = T->td_tid;
	t_pri = 0; /* there is one priority */
	t_state = T->td_state;
	td_ucred = T->td_proc->p_ucred;
	td_priority = 0;
	td_oncpu = T == curthread ? cpu : -1; /* of another CPU's thread it is not known */
	td_lastcpu = T == curthread ? cpu : -1;
	td_inhibitors = T->td_state == TDS_INHIBITED ? 0x0002 : 0; /* TDI_SLEEPING: there is no other reason */
};
