/* New processes (FreeBSD sys/kern/kern_fork.c, kern_kthread.c). */
#include "sys/cpuvar.h"
#include "sys/file.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

SDT_PROVIDER_DECLARE(proc);
SDT_PROBE_DEFINE3(proc, , , create, "struct proc *", "struct proc *", "int");

static pid_t lastpid;
extern pid_t mpid;
pid_t mpid; /* the same, as illumos calls it */

/* Process numbers go up, and start again after PID_MAX; one in use is skipped. */
pid_t
fork_findpid(void)
{
	const pid_t PID_MAX = 99999;

	do
		lastpid = lastpid >= PID_MAX ? 100 : lastpid + 1;
	while (pfind(lastpid) != NULL);
	return (mpid = lastpid);
}

/* Everything of the parent the child inherits. */
static void
do_fork(struct thread *td, struct fork_req *fr, struct proc *p2, struct vmspace *vm2)
{
	struct proc *p1 = td->td_proc;
	struct thread *td2 = p2->p_threads;

	p2->p_psstrings = p1->p_psstrings;
	p2->p_pgrp = p1->p_pgrp;
	p2->p_nice = p1->p_nice;
	p2->p_cred = p1->p_cred;
	p2->p_ucred = &p2->p_cred;
	strlcpy(p2->p_comm, fr->fr_name != NULL ? fr->fr_name : p1->p_comm, sizeof(p2->p_comm));
	strlcpy(td2->td_name, p2->p_comm, sizeof(td2->td_name));
	if (fr->fr_name != NULL)
		proc_set_args(p2, fr->fr_name, strlen(fr->fr_name) + 1);
	else
		proc_set_args(p2, (const char *)p1->p_args->ar_args, p1->p_args->ar_length);
	if (vm2 != NULL) {
		p2->p_vmspace = vm2;
		p2->p_pmap = &vm2->vm_pmap;
	}
	p2->p_fd = fr->fr_flags & RFCFDG ? fdinit() : fdcopy(p1->p_fd);
	p2->p_sigacts = sigacts_copy(p1->p_sigacts);
	td2->td_sigmask = td->td_sigmask;
	p2->p_textvp = p1->p_textvp;
	if (p2->p_textvp != NULL) {
		vref(p2->p_textvp);
		p2->p_textvp->v_textcount++;
	}
	p2->p_starttime = nanouptime();

	sx_xlock(&proctree_lock);
	p2->p_pptr = p1;
	TAILQ_INSERT_TAIL(&p1->p_children, p2, p_sibling);
	sx_xunlock(&proctree_lock);
	p2->p_pid = fork_findpid();
	proc_insert(p2);

	if (fr->fr_function != NULL) {
		p2->p_flag |= P_KPROC;
		td2->td_flags |= TDF_KTHREAD;
		cpu_thread_start(td2, fr->fr_function, fr->fr_arg);
	} else
		cpu_fork(td, td2);
	if (fr->fr_flags & RFPPWAIT)
		p2->p_flag |= P_PPWAIT;
	p2->p_state = PRS_NORMAL;
	SDT_PROBE3(proc, , , create, p2, p1, fr->fr_flags);
	if (fr->fr_function == NULL)
		dtrace_fasttrap_fork(p1, p2);
	setrunnable(td2);
	*fr->fr_procp = p2;
}

/* 0, EAGAIN with too many processes, or ENOMEM. */
int
fork1(struct thread *td, struct fork_req *fr)
{
	struct proc *p1 = td->td_proc, *p2;
	struct vmspace *vm2 = NULL;

	if ((p2 = proc_alloc()) == NULL)
		return (EAGAIN);
	if (p1->p_vmspace != NULL && fr->fr_function == NULL) {
		if (fr->fr_flags & RFMEM) {
			vm2 = p1->p_vmspace;
			vm2->vm_refcnt++;
		} else if ((vm2 = vmspace_fork(p1->p_vmspace)) == NULL) {
			proc_free(p2);
			return (ENOMEM);
		}
	}
	do_fork(td, fr, p2, vm2);
	return (0);
}

int
sys_fork(struct thread *td, struct fork_args *uap __unused)
{
	struct proc *p2;
	struct fork_req fr = { .fr_flags = RFFDG | RFPROC, .fr_procp = &p2 };
	int error = fork1(td, &fr);

	if (error == 0) {
		CPU_STATS_ADD(sysinfo, sysfork, 1);
		td->td_retval[0] = p2->p_pid;
	}
	return (error);
}

/* The child borrows the address space; the parent waits until it is given back. */
int
sys_vfork(struct thread *td, struct vfork_args *uap __unused)
{
	struct proc *p2;
	struct fork_req fr = { .fr_flags = RFFDG | RFPROC | RFPPWAIT | RFMEM, .fr_procp = &p2 };
	int error = fork1(td, &fr);

	if (error != 0)
		return (error);
	CPU_STATS_ADD(sysinfo, sysvfork, 1);
	td->td_retval[0] = p2->p_pid;
	while (p2->p_flag & P_PPWAIT)
		tsleep(&p2->p_flag, 0, "ppwait", 0);
	return (0);
}

/* The child's first steps: to user mode, where fork returned. */
void
fork_return(void *arg)
{
	struct thread *td = arg;

	userret(td, td->td_frame);
	cpu_user_enter(td->td_frame);
}

/* A process that stays in the kernel. */
int
kproc_create(void (*function)(void *), void *arg, struct proc **newp, const char *name)
{
	struct proc *p2;
	struct fork_req fr = { .fr_flags = RFCFDG | RFPROC, .fr_procp = &p2, .fr_function = function, .fr_arg = arg, .fr_name = name };
	int error = fork1(&thread0, &fr);

	if (error == 0 && newp != NULL)
		*newp = p2;
	return (error);
}
