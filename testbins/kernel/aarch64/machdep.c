/* Processor set-up, and what the machine-independent part asks about threads and frames. */
#include "machdep.h"

#include "armreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

#define INSN_SIZE 4

char emergency_stack[EMERGENCY_STACK_SIZE] __attribute__((aligned(16)));

void
cpu_startup(void)
{
	pcpu0.pc_scratch[SCRATCH_KSTACK_LIMIT] = (vaddr_t)kstack0 + PAGE_SIZE + sizeof(struct trapframe) + TF_GAP;
	__asm__ volatile("msr vbar_el1, %0; msr cpacr_el1, xzr; isb" ::"r"(exception_vectors));
}

void
cpu_idle(void)
{
	__asm__ volatile("msr daifclr, %0; wfi; msr daifset, %0" ::"i"(DAIF_I) : "memory");
}

void
cpu_halt(void)
{
	for (;;)
		__asm__ volatile("msr daifset, %0; wfi" ::"i"(DAIF_ALL));
}

void
cpu_thread_start(struct thread *td, void (*function)(void *), void *arg)
{
	td->td_pcb = (struct pcb){
		.pcb_x[19 - 19] = (vaddr_t)function,
		.pcb_x[20 - 19] = (vaddr_t)arg,
		.pcb_x[30 - 19] = (vaddr_t)fork_trampoline,
		.pcb_sp = td->td_kstack + td->td_kstack_size - sizeof(struct trapframe),
	};
}

void
cpu_fork(struct thread *parent, struct thread *child)
{
	*child->td_frame = *parent->td_frame;
	cpu_syscall_result(child->td_frame, 0, 0);
	cpu_thread_start(child, fork_return, child);
}

void
cpu_exec_setregs(struct trapframe *frame, vaddr_t entry, vaddr_t sp, uint64_t argc, vaddr_t argv, vaddr_t envp)
{
	*frame = (struct trapframe){
		.tf_elr = entry,
		.tf_sp = sp,
		.tf_x = { argc, argv, envp },
		.tf_spsr = PSR_M_EL0T,
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
 * A frame may change nothing but the flags in the program status: not the exception level, not the interrupt masks.
 */
int
cpu_sigreturn(struct trapframe *frame, const struct trapframe *saved)
{
	if ((saved->tf_spsr & ~(uint64_t)PSR_FLAGS) != PSR_M_EL0T)
		return EINVAL;
	*frame = *saved;
	return 0;
}

uint64_t
cpu_syscall_number(struct trapframe *frame)
{
	return frame->tf_x[8];
}

int
cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg __unused)
{
	memcpy(args, frame->tf_x, 6 * sizeof(args[0]));
	return 0;
}

void
cpu_syscall_result(struct trapframe *frame, int error, uint64_t value)
{
	switch (error) {
	case EJUSTRETURN:
		break;
	case ERESTART:
		frame->tf_elr -= INSN_SIZE;
		break;
	case 0:
		frame->tf_x[0] = value;
		frame->tf_spsr &= ~(uint64_t)PSR_C;
		break;
	default:
		frame->tf_x[0] = error;
		frame->tf_spsr |= PSR_C;
		break;
	}
}

vaddr_t
frame_pc(struct trapframe *frame)
{
	return frame->tf_elr;
}

vaddr_t
frame_sp(struct trapframe *frame)
{
	return frame->tf_sp;
}

bool
frame_is_user(struct trapframe *frame)
{
	return (frame->tf_spsr & PSR_M_MASK) == PSR_M_EL0T;
}

/*
 * The return addresses of the current kernel stack, from the interrupted function outwards.
 */
void
cpu_stacktrace(struct trapframe *frame)
{
	vaddr_t low = curthread != NULL ? curthread->td_kstack : (vaddr_t)kstack0 + PAGE_SIZE;
	vaddr_t high = low + KSTACK_SIZE;
	vaddr_t fp = frame != NULL ? frame->tf_x[29] : (vaddr_t)__builtin_frame_address(0);
	int depth = 0;

	if (frame != NULL)
		printf("#%d 0x%lx\n", depth++, frame->tf_elr);
	while (fp >= low && fp <= high - 2 * sizeof(vaddr_t) && fp % sizeof(vaddr_t) == 0) {
		const vaddr_t *record = (const vaddr_t *)fp; /* the caller's x29, the return address */

		printf("#%d 0x%lx\n", depth++, record[1]);
		low = fp + 1;
		fp = record[0];
	}
}
