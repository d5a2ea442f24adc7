/* Processor set-up, and what the machine-independent part asks about threads and frames. */
#include "machdep.h"

#include "cpufunc.h"
#include "segments.h"
#include "specialreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

#define NIDT 33 /* the processor's exceptions, and the clock */
#define IDT_CLOCK 32
#define IST_DBLFAULT 1
#define SYSCALL_LENGTH 2

struct gate_descriptor {
	uint16_t gd_looffset, gd_selector;
	uint8_t gd_ist, gd_type;
	uint16_t gd_midoffset;
	uint32_t gd_hioffset, gd_rsvd;
};

#define SDT_INTERRUPT 0x8e /* present, interrupts off on entry */
#define SDT_DPL3 0x60	   /* a program may use it: int3, into */

typedef void inthand_t(void);

extern inthand_t Xdiv, Xdbg, Xnmi, Xbpt, Xofl, Xbnd, Xill, Xdna, Xdblfault, Xtss, Xmissing, Xstk, Xprot, Xpage, Xfpu,
    Xalign, Xmchk, Xxmm, Xrsvd, Xtimerint;

static const struct {
	uint8_t vector, dpl, ist;
	inthand_t *handler;
} vectors[] = {
	{ 0, 0, 0, Xdiv },
	{ 1, 0, 0, Xdbg },
	{ 2, 0, 0, Xnmi },
	{ 3, SDT_DPL3, 0, Xbpt },
	{ 4, SDT_DPL3, 0, Xofl },
	{ 5, 0, 0, Xbnd },
	{ 6, 0, 0, Xill },
	{ 7, 0, 0, Xdna },
	{ 8, 0, IST_DBLFAULT, Xdblfault }, /* the stack it happened on is likely the reason */
	{ 10, 0, 0, Xtss },
	{ 11, 0, 0, Xmissing },
	{ 12, 0, 0, Xstk },
	{ 13, 0, 0, Xprot },
	{ 14, 0, 0, Xpage },
	{ 16, 0, 0, Xfpu },
	{ 17, 0, 0, Xalign },
	{ 18, 0, 0, Xmchk },
	{ 19, 0, 0, Xxmm },
	{ IDT_CLOCK, 0, 0, Xtimerint },
};

struct tss common_tss;
static struct gate_descriptor idt[NIDT];
static char dblfault_stack[2 * PAGE_SIZE] __attribute__((aligned(16)));

/* In the order of segments.h. The last two words are the task state segment. */
static uint64_t gdt[] = {
	0,
	0x00209b0000000000, /* kernel code: 64 bit, accessed */
	0x0000930000000000, /* kernel data */
	0,
	0x0000f30000000000, /* user data: DPL 3 */
	0x0020fb0000000000, /* user code: 64 bit, DPL 3 */
	0,
	0,
};

static void
setidt(int vector, inthand_t *handler, int dpl, int ist)
{
	vaddr_t address = (vaddr_t)handler;

	idt[vector] = (struct gate_descriptor){
		.gd_looffset = address,
		.gd_selector = SEL_KCODE,
		.gd_ist = ist,
		.gd_type = SDT_INTERRUPT | dpl,
		.gd_midoffset = address >> 16,
		.gd_hioffset = address >> 32,
	};
}

static void
set_tss_descriptor(vaddr_t base)
{
	uint64_t *descriptor = &gdt[SEL_TSS / sizeof(gdt[0])];

	descriptor[0] = (sizeof(common_tss) - 1) | (base & 0xffffff) << 16 | 0x89ul << 40 | (base >> 24 & 0xff) << 56;
	descriptor[1] = base >> 32;
}

void
cpu_startup(void)
{
	const struct region_descriptor gdt_region = { sizeof(gdt) - 1, (vaddr_t)gdt };
	const struct region_descriptor idt_region = { sizeof(idt) - 1, (vaddr_t)idt };

	common_tss.tss_ist[IST_DBLFAULT - 1] = (vaddr_t)dblfault_stack + sizeof(dblfault_stack);
	common_tss.tss_iobase = sizeof(common_tss); /* no I/O ports */
	set_tss_descriptor((vaddr_t)&common_tss);
	lgdt(&gdt_region);
	__asm__ volatile("ltr %0" ::"r"((uint16_t)SEL_TSS));

	for (int vector = 0; vector < IDT_CLOCK; vector++)
		setidt(vector, Xrsvd, 0, 0);
	for (size_t i = 0; i < nitems(vectors); i++)
		setidt(vectors[i].vector, vectors[i].handler, vectors[i].dpl, vectors[i].ist);
	__asm__ volatile("lidt %0" ::"m"(idt_region));

	wrmsr(MSR_GSBASE, (vaddr_t)&pcpu0);
	wrmsr(MSR_KGSBASE, 0);
	wrmsr(MSR_STAR, (uint64_t)SEL_USTAR << 48 | (uint64_t)SEL_KCODE << 32);
	wrmsr(MSR_LSTAR, (vaddr_t)fast_syscall);
	wrmsr(MSR_SFMASK, PSL_I | PSL_T | PSL_D | PSL_NT | PSL_AC);
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
		.pcb_r12 = (vaddr_t)function,
		.pcb_rbx = (vaddr_t)arg,
		.pcb_rsp = sp - sizeof(vaddr_t), /* cpu_switch returns through it */
		.pcb_rip = (vaddr_t)fork_trampoline,
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

uint64_t
cpu_syscall_number(struct trapframe *frame)
{
	return frame->tf_rax;
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

void
cpu_syscall_result(struct trapframe *frame, int error, uint64_t value)
{
	switch (error) {
	case EJUSTRETURN:
		break;
	case ERESTART:
		frame->tf_rip -= SYSCALL_LENGTH;
		break;
	case 0:
		frame->tf_rax = value;
		frame->tf_rflags &= ~(uint64_t)PSL_C;
		frame->tf_r11 = frame->tf_rflags; /* as sysretq needs it */
		break;
	default:
		frame->tf_rax = error;
		frame->tf_rflags |= PSL_C;
		frame->tf_r11 = frame->tf_rflags;
		break;
	}
}

vaddr_t
frame_pc(struct trapframe *frame)
{
	return frame->tf_rip;
}

vaddr_t
frame_sp(struct trapframe *frame)
{
	return frame->tf_rsp;
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
	vaddr_t fp = frame != NULL ? frame->tf_rbp : (vaddr_t)__builtin_frame_address(0);
	int depth = 0;

	if (frame != NULL)
		printf("#%d 0x%lx\n", depth++, frame->tf_rip);
	while (fp >= low && fp <= high - 2 * sizeof(vaddr_t) && fp % sizeof(vaddr_t) == 0) {
		const vaddr_t *record = (const vaddr_t *)fp; /* the caller's rbp, the return address */

		printf("#%d 0x%lx\n", depth++, record[1]);
		low = fp + 1;
		fp = record[0];
	}
}
