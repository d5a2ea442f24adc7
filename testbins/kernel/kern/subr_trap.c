/* In from user mode and out again (FreeBSD sys/kern/subr_trap.c, subr_syscall.c). */
#include "sys/cpuvar.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/syscall.h"
#include "sys/systrace.h"
#include "sys/vm.h"

/* There is work to do before the thread may continue in user mode. */
void
ast(struct thread *td, struct trapframe *frame __unused)
{
	int sig;

	if (td->td_flags & TDF_NEEDRESCHED)
		mi_switch(SW_INVOL);
	if (thread_must_exit(td))
		thread_exit();
	if (td->td_flags & TDF_ASTPENDING) {
		td->td_flags &= ~TDF_ASTPENDING;
		while ((sig = cursig(td)) != 0)
			postsig(sig);
		if (td->td_flags & TDF_OLDMASK) { /* sigsuspend, and no handler ran */
			td->td_sigmask = td->td_oldsigmask;
			td->td_flags &= ~TDF_OLDMASK;
		}
	}
}

/* The last thing on every way to user mode. */
void
userret(struct thread *td, struct trapframe *frame)
{
	while (td->td_flags & (TDF_NEEDRESCHED | TDF_ASTPENDING))
		ast(td, frame);
	KASSERT(td->td_locks == 0, ("to user mode with %d mutexes held", td->td_locks));
}

static int
cpu_fetch_syscall_args(struct thread *td)
{
	struct syscall_args *sa = &td->td_sa;
	uint64_t code = cpu_syscall_number(td->td_frame);

	sa->code = code;
	sa->callp = &sysent[code < SYS_MAXSYSCALL && sysent[code].sy_call != NULL ? code : 0];
	td->td_retval[0] = 0;
	td->td_retval[1] = 0;
	return (cpu_syscall_args(td->td_frame, sa->args, sa->callp->sy_narg));
}

static int
syscallenter(struct thread *td)
{
	struct syscall_args *sa = &td->td_sa;
	int error = cpu_fetch_syscall_args(td);

	if (error == 0) {
		SYSTRACE(sa, SYSTRACE_ENTRY, 0);
		error = sa->callp->sy_call(td, sa->args);
	}
	td->td_errno = error;
	SYSTRACE(sa, SYSTRACE_RETURN, error != 0 ? -1 : (int)td->td_retval[0]);
	td->td_syscalls++;
	return (error);
}

static void
syscallret(struct thread *td, int error)
{
	cpu_syscall_result(td->td_frame, error, td->td_retval[0]);
	userret(td, td->td_frame);
}

void
syscall(struct trapframe *frame __unused)
{
	struct thread *td = curthread;

	syscallret(td, syscallenter(td));
}

void
trap_signal(struct trapframe *frame, int sig, vaddr_t address)
{
	struct siginfo info = { .si_signo = sig, .si_addr = address };

	CPU_STATS_ADD(sysinfo, trap, 1);
	trapsignal(curthread, &info);
	userret(curthread, frame);
}

static int
trap_pfault(struct thread *td, vaddr_t address, int access)
{
	struct vmspace *vm = td->td_proc->p_vmspace;

	return (address >= USER_END || vm == NULL ? EFAULT : vm_fault(vm, address, access));
}

void
trap_fault(struct trapframe *frame, vaddr_t address, int access)
{
	struct thread *td = curthread;
	char what[64];
	int error;

	if (!frame_is_user(frame)) {
		snprintf(what, sizeof(what), "page fault in the kernel: %s of %#lx",
		    access == PROT_EXEC ? "execution" : access == PROT_WRITE ? "write" : "read", address);
		trap_fatal(frame, what);
	}
	error = trap_pfault(td, address, access);
	if (error == 0) {
		CPU_STATS_ADD(sysinfo, trap, 1);
		userret(td, frame);
	} else
		trap_signal(frame, error == ENOMEM ? SIGKILL : SIGSEGV, address);
}

int
sys_nosys(struct thread *td, void *uap __unused)
{
	struct siginfo info = { .si_signo = SIGSYS };

	trapsignal(td, &info);
	return (ENOSYS);
}
