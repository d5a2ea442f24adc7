/* The ABI of x86-64 programs: how one starts, how it passes the arguments of a system call, what it may restore. */
#include "machdep.h"

#include "segments.h"
#include "specialreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

void
cpu_exec_setregs(struct trapframe *frame, vaddr_t entry, vaddr_t sp, uint64_t argc, vaddr_t argv, vaddr_t envp)
{
	*frame = (struct trapframe){
		.tf_rip = entry,
		.tf_rsp = sp,
		.tf_rdi = argc,
		.tf_rsi = argv,
		.tf_rdx = envp,
		.tf_cs = SEL_UCODE,
		.tf_ss = SEL_UDATA,
		.tf_rflags = PSL_USER,
	};
}

/* A new thread's first call. */
int
cpu_set_upcall(struct thread *td, vaddr_t entry, vaddr_t arg, vaddr_t stack_end)
{
	cpu_exec_setregs(td->td_frame, entry, stack_end, arg, 0, 0);
	return 0;
}

/*
 * A frame that would leave user mode, or that iretq would refuse, must not get as far as the iretq.
 */
int
cpu_sigreturn(struct trapframe *frame, const struct trapframe *saved)
{
	if (saved->tf_cs != SEL_UCODE || saved->tf_ss != SEL_UDATA || saved->tf_rip >= USER_END ||
	    ((saved->tf_rflags ^ frame->tf_rflags) & ~(uint64_t)PSL_USERCHANGE) != 0)
		return EINVAL;
	*frame = *saved;
	return 0;
}

/* r10 in place of rcx, where the processor puts rip. */
int
cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg __unused)
{
	args[0] = frame->tf_rdi;
	args[1] = frame->tf_rsi;
	args[2] = frame->tf_rdx;
	args[3] = frame->tf_r10;
	args[4] = frame->tf_r8;
	args[5] = frame->tf_r9;
	return 0;
}

/* The processor pushes rsp in every trap, from kernel mode too. */
vaddr_t
frame_sp(struct trapframe *frame)
{
	return frame->tf_rsp;
}
