/* The end of a process, and its parent's part in it (FreeBSD sys/kern/kern_exit.c). */
#include "sys/file.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/time.h"
#include "sys/vm.h"
#include "sys/vnode.h"
#include "sys/wait.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE1(proc, , , exit, "int");
SDT_PROBE_DEFINE(proc, , , lwp__exit);

int
sys_exit(struct thread *td, struct exit_args *uap)
{
	exit1(td, uap->rval, 0);
}

/* Its children become init's, and init is notified of those that are dead already. */
static void
exit_reparent_children(struct proc *p)
{
	struct proc *child, *next;

	TAILQ_FOREACH_SAFE(child, &p->p_children, p_sibling, next) {
		proc_reparent(child, initproc);
		if (child->p_state == PRS_ZOMBIE)
			wakeup(initproc);
	}
}

void
exit1(struct thread *td, int rval, int signo)
{
	struct proc *p = td->td_proc;

	if (p == initproc)
		panic("Going nowhere without my init! (exit %d, signal %d)", rval, signo);
	thread_single(td);
	p->p_flag |= P_WEXIT;
	dtrace_fasttrap_exit(p);
	itimer_cancel(p);
	fdescfree(td);
	vmspace_exec_release(p);
	if (p->p_textvp != NULL) {
		p->p_textvp->v_textcount--;
		vrele(p->p_textvp);
		p->p_textvp = NULL;
	}
	sigacts_free(p->p_sigacts);
	p->p_sigacts = NULL;

	sx_xlock(&proctree_lock);
	exit_reparent_children(p);
	sx_xunlock(&proctree_lock);
	p->p_xexit = rval;
	p->p_xsig = signo;
	SDT_PROBE1(proc, , , exit, signo != 0 ? CLD_KILLED : CLD_EXITED);
	p->p_state = PRS_ZOMBIE;
	if (p->p_flag & P_PPWAIT) {
		p->p_flag &= ~P_PPWAIT;
		wakeup(&p->p_flag);
	}
	kern_psignal(p->p_pptr, SIGCHLD);
	wakeup(p->p_pptr);

	/* The parent frees this thread, but not while we are on its stack: it cannot run before the switch. */
	SDT_PROBE0(proc, , , lwp__exit);
	td->td_state = TDS_INACTIVE;
	mi_switch(SW_VOL);
	panic("a dead thread runs");
}

static void
proc_reap(struct thread *td, struct proc *p, int *status)
{
	*status = W_EXITCODE(p->p_xexit, p->p_xsig);
	td->td_retval[0] = p->p_pid;
	td->td_proc->p_child_runtime += p->p_threads->td_runtime + p->p_child_runtime;
	TAILQ_REMOVE(&p->p_pptr->p_children, p, p_sibling);
	proc_remove(p);
	proc_free(p);
}

/* pid -1: any child. td_retval[0] is the child, or 0 with WNOHANG and none dead. */
static int
kern_wait(struct thread *td, pid_t pid, int *status, int options)
{
	struct proc *q = td->td_proc, *p;
	bool found;
	int error;

	for (;;) {
		found = false;
		sx_xlock(&proctree_lock);
		TAILQ_FOREACH(p, &q->p_children, p_sibling) {
			if (pid != -1 && p->p_pid != pid)
				continue;
			found = true;
			if (p->p_state == PRS_ZOMBIE) {
				proc_reap(td, p, status);
				sx_xunlock(&proctree_lock);
				return (0);
			}
		}
		sx_xunlock(&proctree_lock);
		if (!found)
			return (ECHILD);
		if (options & WNOHANG) {
			td->td_retval[0] = 0;
			return (0);
		}
		if ((error = tsleep(q, PCATCH, "wait", 0)) != 0)
			return (error);
	}
}

int
sys_wait4(struct thread *td, struct wait4_args *uap)
{
	int status = 0, error;

	if (uap->pid < -1 || uap->pid == 0)
		return (EINVAL); /* there are no process groups */
	if (uap->rusage != NULL)
		return (EINVAL); /* getrusage(RUSAGE_CHILDREN) has it */
	error = kern_wait(td, uap->pid, &status, uap->options);
	if (error == 0 && uap->status != NULL && td->td_retval[0] != 0)
		error = copyout(&status, uap->status, sizeof(status));
	return (error);
}
