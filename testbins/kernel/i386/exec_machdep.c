/* The ABI of i386 programs: how one starts, how it passes the arguments of a system call, what it may restore. */
#include "machdep.h"

#include "segments.h"
#include "specialreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"
#include "sys/systm.h"

/* Where a program begins, and in sigcode, no caller has pushed arguments: they are in eax, edx and ecx. */
void
cpu_exec_setregs(struct trapframe *frame, vaddr_t entry, vaddr_t sp, uint64_t argc, vaddr_t argv, vaddr_t envp)
{
	*frame = (struct trapframe){
		.tf_eip = entry,
		.tf_esp = sp,
		.tf_eax = argc,
		.tf_edx = argv,
		.tf_ecx = envp,
		.tf_cs = SEL_UCODE,
		.tf_ss = SEL_UDATA,
		.tf_ds = SEL_UDATA,
		.tf_es = SEL_UDATA,
		.tf_fs = SEL_UDATA,
		.tf_eflags = PSL_USER,
	};
}

/* A new thread's first call: its argument is above a return address that ends its stack (FreeBSD vm_machdep.c). */
int
cpu_set_upcall(struct thread *td, vaddr_t entry, vaddr_t arg, vaddr_t stack_end)
{
	const uint32_t words[] = { 0, arg };

	cpu_exec_setregs(td->td_frame, entry, rounddown2(stack_end - sizeof(arg), 16) - sizeof(vaddr_t), 0, 0, 0);
	return copyout(words, (void *)td->td_frame->tf_esp, sizeof(words));
}

/*
 * A frame that would leave user mode, or that iret would refuse, must not get as far as the iret.
 */
int
cpu_sigreturn(struct trapframe *frame, const struct trapframe *saved)
{
	if (saved->tf_cs != SEL_UCODE || saved->tf_ss != SEL_UDATA || saved->tf_ds != SEL_UDATA ||
	    saved->tf_es != SEL_UDATA || saved->tf_fs != SEL_UDATA ||
	    ((saved->tf_eflags ^ frame->tf_eflags) & ~PSL_USERCHANGE) != 0)
		return EINVAL;
	*frame = *saved;
	return 0;
}

/* Above the return address of the stub that trapped; laid out in memory as they are here. */
int
cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg)
{
	return copyin((const void *)(frame->tf_esp + sizeof(uint32_t)), args, narg * sizeof(uint32_t));
}

/* In a trap from kernel mode the processor pushed no esp: the interrupted stack begins where the frame ends. */
vaddr_t
frame_sp(struct trapframe *frame)
{
	return frame_is_user(frame) ? frame->tf_esp : (vaddr_t)&frame->tf_esp;
}
