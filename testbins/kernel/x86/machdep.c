/*
 * Processor set-up, and what the machine-independent part asks about threads and frames, for both x86. TF_REG and
 * PCB_REG (machdep.h) name the field of a register whose name begins with r on one and with e on the other.
 */
#include "machdep.h"

#include "segments.h"
#include "specialreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

#define SYSCALL_LENGTH 2 /* bytes of the instruction that makes a system call */

extern inthand_t Xdiv, Xdbg, Xnmi, Xbpt, Xofl, Xbnd, Xill, Xdna, Xtss, Xmissing, Xstk, Xprot, Xpage, Xfpu, Xalign,
    Xmchk, Xxmm, Xrsvd, Xtimerint;

/* The double fault is not here: each ISA gives it a stack of its own in another way (descriptors.c). */
static const struct {
	uint8_t vector, dpl;
	inthand_t *handler;
} vectors[] = {
	{ 0, 0, Xdiv },
	{ 1, 0, Xdbg },
	{ 2, 0, Xnmi },
	{ 3, SDT_DPL3, Xbpt },
	{ 4, SDT_DPL3, Xofl },
	{ 5, 0, Xbnd },
	{ 6, 0, Xill },
	{ 7, 0, Xdna },
	{ 10, 0, Xtss },
	{ 11, 0, Xmissing },
	{ 12, 0, Xstk },
	{ 13, 0, Xprot },
	{ 14, 0, Xpage },
	{ 16, 0, Xfpu },
	{ 17, 0, Xalign },
	{ 18, 0, Xmchk },
	{ 19, 0, Xxmm },
	{ IDT_CLOCK, 0, Xtimerint },
};

struct tss common_tss;

void
cpu_startup(void)
{
	for (int vector = 0; vector <= IDT_CLOCK; vector++)
		setidt(vector, Xrsvd, 0);
	for (size_t i = 0; i < nitems(vectors); i++)
		setidt(vectors[i].vector, vectors[i].handler, vectors[i].dpl);
	common_tss.tss_iobase = sizeof(common_tss); /* no I/O ports */
	descriptors_init();
}

void
cpu_idle(void)
{
	__asm__ volatile("sti; hlt; cli" ::: "memory");
}

void
cpu_halt(void)
{
	for (;;)
		__asm__ volatile("cli; hlt");
}

void
cpu_thread_start(struct thread *td, void (*function)(void *), void *arg)
{
	vaddr_t sp = rounddown2(td->td_kstack + td->td_kstack_size - sizeof(struct trapframe), 16);

	td->td_pcb = (struct pcb){
		.pcb_function = (vaddr_t)function,
		.PCB_REG(bx) = (vaddr_t)arg,
		.PCB_REG(sp) = sp - sizeof(vaddr_t), /* cpu_switch returns through this word */
		.PCB_REG(ip) = (vaddr_t)fork_trampoline,
	};
}

void
cpu_fork(struct thread *parent, struct thread *child)
{
	*child->td_frame = *parent->td_frame;
	cpu_syscall_result(child->td_frame, 0, 0);
	cpu_thread_start(child, fork_return, child);
}

uint64_t
cpu_syscall_number(struct trapframe *frame)
{
	return frame->TF_REG(ax);
}

void
cpu_syscall_result(struct trapframe *frame, int error, uint64_t value)
{
	switch (error) {
	case EJUSTRETURN:
		break;
	case ERESTART:
		frame->TF_REG(ip) -= SYSCALL_LENGTH;
		break;
	case 0:
		frame_set_result(frame, value);
		frame_set_flags(frame, frame->TF_REG(flags) & ~(vaddr_t)PSL_C);
		break;
	default:
		frame->TF_REG(ax) = error;
		frame_set_flags(frame, frame->TF_REG(flags) | PSL_C);
		break;
	}
}

vaddr_t
frame_pc(struct trapframe *frame)
{
	return frame->TF_REG(ip);
}

bool
frame_is_user(struct trapframe *frame)
{
	return (frame->tf_cs & SEL_RPL_MASK) != 0;
}

/*
 * The return addresses of the current kernel stack, from the interrupted function outwards.
 */
void
cpu_stacktrace(struct trapframe *frame)
{
	vaddr_t low = curthread != NULL ? curthread->td_kstack : (vaddr_t)kstack0 + PAGE_SIZE;
	vaddr_t high = low + KSTACK_SIZE;
	vaddr_t fp = frame != NULL ? frame->TF_REG(bp) : (vaddr_t)__builtin_frame_address(0);
	int depth = 0;

	if (frame != NULL)
		printf("#%d 0x%lx\n", depth++, (unsigned long)frame_pc(frame));
	while (fp >= low && fp <= high - 2 * sizeof(vaddr_t) && fp % sizeof(vaddr_t) == 0) {
		const vaddr_t *record = (const vaddr_t *)fp; /* the caller's frame pointer, the return address */

		printf("#%d 0x%lx\n", depth++, (unsigned long)record[1]);
		low = fp + 1; /* a frame must lie above the one before it, or the walk could go on forever */
		fp = record[0];
	}
}
