/* The identity of a process (FreeBSD sys/kern/kern_prot.c). */
#include "sys/priv.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

static pid_t
kern_getppid(struct thread *td)
{
	struct proc *parent = td->td_proc->p_pptr;

	return (parent != NULL ? parent->p_pid : 0);
}

/* The second value is 4.3BSD's: getppid was getpid's other register. */
int
sys_getpid(struct thread *td, struct getpid_args *uap __unused)
{
	td->td_retval[0] = td->td_proc->p_pid;
	td->td_retval[1] = kern_getppid(td);
	return (0);
}

int
sys_getppid(struct thread *td, struct getppid_args *uap __unused)
{
	td->td_retval[0] = kern_getppid(td);
	return (0);
}

int
sys_getuid(struct thread *td, struct getuid_args *uap __unused)
{
	td->td_retval[0] = td->td_proc->p_ucred->cr_uid;
	return (0);
}

/* There is one user id, where FreeBSD has a real, an effective and a saved one. */
int
sys_setuid(struct thread *td, struct setuid_args *uap)
{
	int error = 0;

	if (uap->uid != td->td_proc->p_ucred->cr_uid && (error = priv_check(td, PRIV_CRED_SETUID)) == 0)
		td->td_proc->p_ucred->cr_uid = td->td_proc->p_ucred->cr_ruid = td->td_proc->p_ucred->cr_svuid = uap->uid;
	return (error);
}

int
sys_geteuid(struct thread *td, struct geteuid_args *uap __unused)
{
	td->td_retval[0] = td->td_proc->p_ucred->cr_uid;
	return (0);
}

int
sys_getgid(struct thread *td, struct getgid_args *uap __unused)
{
	td->td_retval[0] = td->td_proc->p_ucred->cr_gid;
	return (0);
}

int
sys_getegid(struct thread *td, struct getegid_args *uap __unused)
{
	td->td_retval[0] = td->td_proc->p_ucred->cr_gid;
	return (0);
}

int
sys_thr_self(struct thread *td, struct thr_self_args *uap)
{
	return (suword(uap->id, td->td_tid));
}
