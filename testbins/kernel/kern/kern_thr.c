/* The threads of a process (FreeBSD sys/kern/kern_thr.c, kern_thread.c). */
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/thr.h"
#include "sys/vm.h"

static void
thread_link(struct thread *td, struct proc *p)
{
	struct thread **link = &p->p_threads;

	while (*link != NULL)
		link = &(*link)->td_next;
	*link = td;
	td->td_proc = p;
	td->td_next = NULL;
	p->p_numthreads++;
}

static void
thread_unlink(struct thread *td)
{
	struct thread **link = &td->td_proc->p_threads;

	while (*link != td)
		link = &(*link)->td_next;
	*link = td->td_next;
	td->td_proc->p_numthreads--;
}

static int
thread_create(struct thread *td, const struct thr_param *param)
{
	struct thread *newtd = thread_alloc();
	long id;
	int error;

	if (newtd == NULL)
		return (EAGAIN);
	id = newtd->td_tid;
	if ((param->child_tid != NULL && copyout(&id, param->child_tid, sizeof(id)) != 0) ||
	    (param->parent_tid != NULL && copyout(&id, param->parent_tid, sizeof(id)) != 0)) {
		thread_free(newtd);
		return (EFAULT);
	}
	cpu_fork(td, newtd);
	error = cpu_set_upcall(newtd, (vaddr_t)param->start_func, (vaddr_t)param->arg, (vaddr_t)param->stack_base + param->stack_size);
	if (error != 0) {
		thread_free(newtd);
		return (error);
	}
	thread_link(newtd, td->td_proc);
	newtd->td_sigmask = td->td_sigmask;
	strlcpy(newtd->td_name, td->td_name, sizeof(newtd->td_name));
	setrunnable(newtd);
	return (0);
}

int
sys_thr_new(struct thread *td, struct thr_new_args *uap)
{
	struct thr_param param;
	int error;

	if (uap->param_size != (int)sizeof(param))
		return (EINVAL);
	error = copyin(uap->param, &param, sizeof(param));
	return (error != 0 ? error : thread_create(td, &param));
}

/* The end of curthread, which is not the last of its process. */
void
thread_exit(void)
{
	struct thread *td = curthread;

	dtrace_fasttrap_thread_exit(td);
	thread_unlink(td);
	wakeup(&td->td_proc->p_numthreads);
	/* No thread takes it, or its stack, before the switch. */
	td->td_state = TDS_INACTIVE;
	thread_free(td);
	mi_switch(SW_VOL);
	panic("a dead thread runs");
}

/* The last thread of a process comes back: it has to exit. */
int
sys_thr_exit(struct thread *td, struct thr_exit_args *uap)
{
	if (uap->state != NULL) {
		suword(uap->state, 1);
		umtx_wake(td->td_proc->p_vmspace, (vaddr_t)uap->state, UINT64_MAX);
	}
	if (td->td_proc->p_numthreads > 1)
		thread_exit();
	return (0);
}

bool
thread_must_exit(struct thread *td)
{
	return (td->td_proc->p_flag & P_SINGLE_EXIT && td->td_proc->p_singlethread != td);
}

/* The process ends or executes another program: only td continues. */
void
thread_single(struct thread *td)
{
	struct proc *p = td->td_proc;

	if (thread_must_exit(td))
		thread_exit();
	if (p->p_numthreads <= 1)
		return;
	p->p_flag |= P_SINGLE_EXIT;
	p->p_singlethread = td;
	for (struct thread *other = p->p_threads; other != NULL; other = other->td_next)
		if (other != td) {
			other->td_flags |= TDF_ASTPENDING;
			sleepq_abort(other, EINTR);
		}
	while (p->p_numthreads > 1)
		tsleep(&p->p_numthreads, 0, "thread", 0);
	p->p_flag &= ~P_SINGLE_EXIT;
}
