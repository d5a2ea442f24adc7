/* Threads by the names that illumos has for their members: curthread->t_procp. */

#pragma D depends_on module kernel

typedef struct kthread_names {
	struct proc *t_procp;
	id_t t_tid;
	id_t t_did;
	int t_pri;
	int t_state;
} kthread_names_t;

translator kthread_names_t < struct thread *T > {
	t_procp = T->td_proc;
	t_tid = T->td_tid;
	t_did = T->td_tid;
	t_pri = 0; /* there is one priority */
	t_state = T->td_state;
};
