/* The rest of what C can do for this ISA (FreeBSD sys/riscv/riscv/machdep.c, vm_machdep.c, exec_machdep.c). */
#include "riscvreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

void cpu_exception_handler(void);
void fork_trampoline(void);

void
cpu_startup(void)
{
	csr_write(stvec, cpu_exception_handler);
	csr_write(sie, SIE_SSIE);
}

void
cpu_thread_start(struct thread *td, void (*function)(void *), void *arg)
{
	td->td_pcb.pcb_ra = (uint64_t)fork_trampoline;
	td->td_pcb.pcb_sp = (uint64_t)td->td_frame;
	td->td_pcb.pcb_s[0] = 0;
	td->td_pcb.pcb_s[1] = (uint64_t)function;
	td->td_pcb.pcb_s[2] = (uint64_t)arg;
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
	memset(frame, 0, sizeof(*frame));
	frame->tf_sepc = entry;
	frame->tf_sp = sp;
	frame->tf_a[0] = argc;
	frame->tf_a[1] = argv;
	frame->tf_a[2] = envp;
	frame->tf_sstatus = SSTATUS_SPIE; /* to user mode, with interrupts on */
}

/* A new thread's first call. */
int
cpu_set_upcall(struct thread *td, vaddr_t entry, vaddr_t arg, vaddr_t stack_end)
{
	cpu_exec_setregs(td->td_frame, entry, stack_end, arg, 0, 0);
	return (0);
}

int
cpu_sigreturn(struct trapframe *frame, const struct trapframe *saved)
{
	if (saved->tf_sstatus & SSTATUS_SPP || saved->tf_sepc >= USER_END)
		return (EINVAL);
	*frame = *saved;
	frame->tf_sstatus = SSTATUS_SPIE;
	return (0);
}

void
cpu_idle(void)
{
	/* wfi wakes up for a pending interrupt even with interrupts off, so none is missed between the two. */
	__asm__ volatile("wfi" ::: "memory");
	csr_set(sstatus, SSTATUS_SIE);
	csr_clear(sstatus, SSTATUS_SIE);
}

void
cpu_halt(void)
{
	csr_clear(sie, SIE_SSIE);
	for (;;)
		__asm__ volatile("wfi");
}

uint64_t
cpu_syscall_number(struct trapframe *frame)
{
	return (frame->tf_t[0]);
}

int
cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg __unused)
{
	for (int i = 0; i < 6; i++)
		args[i] = frame->tf_a[i];
	return 0;
}

void
cpu_syscall_result(struct trapframe *frame, int error, uint64_t value)
{
	switch (error) {
	case 0:
		frame->tf_a[0] = value;
		frame->tf_t[0] = 0;
		break;
	case ERESTART:
		frame->tf_sepc -= 4; /* the ecall again */
		break;
	case EJUSTRETURN:
		break;
	default:
		frame->tf_a[0] = error;
		frame->tf_t[0] = 1;
		break;
	}
}

vaddr_t
frame_pc(struct trapframe *frame)
{
	return (frame->tf_sepc);
}

vaddr_t
frame_sp(struct trapframe *frame)
{
	return (frame->tf_sp);
}

bool
frame_is_user(struct trapframe *frame)
{
	return (!(frame->tf_sstatus & SSTATUS_SPP));
}

/* A frame pointer holds the caller's sp: the return address is the word below it, the caller's frame pointer the next. */
void
cpu_stacktrace(struct trapframe *frame)
{
	uint64_t *fp = frame != NULL ? (uint64_t *)frame->tf_s[0] : __builtin_frame_address(0);
	vaddr_t low = curthread->td_kstack, high = low + curthread->td_kstack_size;

	if (frame != NULL)
		printf("  pc %#lx\n", frame->tf_sepc);
	for (int depth = 0; depth < 32 && (vaddr_t)fp > low + 16 && (vaddr_t)fp <= high; depth++) {
		uint64_t *next = (uint64_t *)fp[-2];

		printf("  %#lx\n", fp[-1]);
		if (next <= fp)
			break;
		fp = next;
	}
}
