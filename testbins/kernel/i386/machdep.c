/* Processor set-up, and what the machine-independent part asks about threads and frames. */
#include "machdep.h"

#include "segments.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"
#include "sys/systm.h"
#include "x86_64/cpufunc.h"
#include "x86_64/specialreg.h"

#define NIDT 129 /* the processor's exceptions, the clock, system calls */
#define IDT_DBLFAULT 8
#define IDT_CLOCK 32
#define IDT_SYSCALL 0x80
#define SYSCALL_LENGTH 2

struct gate_descriptor {
	uint16_t gd_looffset, gd_selector;
	uint8_t gd_stkcpy, gd_type;
	uint16_t gd_hioffset;
};

#define SDT_INTERRUPT 0x8e /* present, interrupts off on entry */
#define SDT_TASK 0x85	   /* present, another task */
#define SDT_DPL3 0x60	   /* a program may use it: int3, into, int $0x80 */

typedef void inthand_t(void);

extern inthand_t Xdiv, Xdbg, Xnmi, Xbpt, Xofl, Xbnd, Xill, Xdna, Xdblfault, Xtss, Xmissing, Xstk, Xprot, Xpage, Xfpu,
    Xalign, Xmchk, Xxmm, Xrsvd, Xtimerint, Xint0x80_syscall;

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
	{ IDT_SYSCALL, SDT_DPL3, Xint0x80_syscall },
};

struct tss common_tss;
static struct tss dblfault_tss;
static struct gate_descriptor idt[NIDT];
static char dblfault_stack[2 * PAGE_SIZE] __attribute__((aligned(16)));

/* In the order of segments.h. The last two are the task state segments. */
static uint64_t gdt[] = {
	0,
	0x00cf9b000000ffff, /* kernel code: accessed */
	0x00cf93000000ffff, /* kernel data */
	0x00cffb000000ffff, /* user code: DPL 3 */
	0x00cff3000000ffff, /* user data */
	0,
	0,
};

static void
setidt(int vector, inthand_t *handler, int dpl)
{
	vaddr_t address = (vaddr_t)handler;

	idt[vector] = (struct gate_descriptor){
		.gd_looffset = address,
		.gd_selector = SEL_KCODE,
		.gd_type = SDT_INTERRUPT | dpl,
		.gd_hioffset = address >> 16,
	};
}

static void
set_tss_descriptor(int selector, const struct tss *tss)
{
	uint64_t base = (vaddr_t)tss;

	gdt[selector / sizeof(gdt[0])] = (sizeof(*tss) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 | (base >> 24) << 56;
}

static void
dblfault_init(void)
{
	dblfault_tss = (struct tss){
		.tss_cr3 = rcr3(),
		.tss_eip = (vaddr_t)Xdblfault,
		.tss_eflags = PSL_MBO,
		.tss_esp = (vaddr_t)dblfault_stack + sizeof(dblfault_stack),
		.tss_cs = SEL_KCODE,
		.tss_ss = SEL_KDATA,
		.tss_ds = SEL_KDATA,
		.tss_es = SEL_KDATA,
		.tss_iobase = sizeof(struct tss),
	};
	set_tss_descriptor(SEL_DBLFLT_TSS, &dblfault_tss);
	idt[IDT_DBLFAULT] = (struct gate_descriptor){ .gd_selector = SEL_DBLFLT_TSS, .gd_type = SDT_TASK };
}

void
cpu_startup(void)
{
	const struct region_descriptor gdt_region = { sizeof(gdt) - 1, (vaddr_t)gdt };
	const struct region_descriptor idt_region = { sizeof(idt) - 1, (vaddr_t)idt };

	common_tss.tss_ss0 = SEL_KDATA;
	common_tss.tss_iobase = sizeof(common_tss); /* no I/O ports */
	set_tss_descriptor(SEL_TSS, &common_tss);
	for (int vector = 0; vector < NIDT; vector++)
		setidt(vector, Xrsvd, 0);
	for (size_t i = 0; i < nitems(vectors); i++)
		setidt(vectors[i].vector, vectors[i].handler, vectors[i].dpl);
	dblfault_init();
	lgdt(&gdt_region);
	__asm__ volatile("ltr %0" ::"r"((uint16_t)SEL_TSS));
	__asm__ volatile("lidt %0" ::"m"(idt_region));
}

/* The registers are where the processor left the task that could not go on. */
void
dblfault_handler(void)
{
	static struct trapframe frame;

	frame.tf_ebp = common_tss.tss_ebp;
	frame.tf_isp = common_tss.tss_esp;
	frame.tf_edi = common_tss.tss_edi;
	frame.tf_esi = common_tss.tss_esi;
	frame.tf_ebx = common_tss.tss_ebx;
	frame.tf_edx = common_tss.tss_edx;
	frame.tf_ecx = common_tss.tss_ecx;
	frame.tf_eax = common_tss.tss_eax;
	frame.tf_eip = common_tss.tss_eip;
	frame.tf_cs = common_tss.tss_cs;
	frame.tf_eflags = common_tss.tss_eflags;
	trap_fatal(&frame, "double fault");
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
		.pcb_esi = (vaddr_t)function,
		.pcb_ebx = (vaddr_t)arg,
		.pcb_esp = sp - sizeof(vaddr_t), /* cpu_switch returns through it */
		.pcb_eip = (vaddr_t)fork_trampoline,
	};
}

void
cpu_fork(struct thread *parent, struct thread *child)
{
	*child->td_frame = *parent->td_frame;
	cpu_syscall_result(child->td_frame, 0, 0);
	cpu_thread_start(child, fork_return, child);
}

/* Where a program begins, and sigcode, there is nobody yet to have pushed arguments: they are in eax, edx and ecx. */
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

uint64_t
cpu_syscall_number(struct trapframe *frame)
{
	return frame->tf_eax;
}

/* Above the return address of the stub that trapped; laid out in memory as they are here. */
int
cpu_syscall_args(struct trapframe *frame, uint64_t args[6], int narg)
{
	return copyin((const void *)(frame->tf_esp + sizeof(uint32_t)), args, narg * sizeof(uint32_t));
}

void
cpu_syscall_result(struct trapframe *frame, int error, uint64_t value)
{
	switch (error) {
	case EJUSTRETURN:
		break;
	case ERESTART:
		frame->tf_eip -= SYSCALL_LENGTH;
		break;
	case 0:
		frame->tf_eax = value;
		frame->tf_edx = value >> 32;
		frame->tf_eflags &= ~PSL_C;
		break;
	default:
		frame->tf_eax = error;
		frame->tf_eflags |= PSL_C;
		break;
	}
}

vaddr_t
frame_pc(struct trapframe *frame)
{
	return frame->tf_eip;
}

vaddr_t
frame_sp(struct trapframe *frame)
{
	return frame_is_user(frame) ? frame->tf_esp : (vaddr_t)&frame->tf_esp;
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
	vaddr_t fp = frame != NULL ? frame->tf_ebp : (vaddr_t)__builtin_frame_address(0);
	int depth = 0;

	if (frame != NULL)
		printf("#%d 0x%lx\n", depth++, frame_pc(frame));
	while (fp >= low && fp <= high - 2 * sizeof(vaddr_t) && fp % sizeof(vaddr_t) == 0) {
		const vaddr_t *record = (const vaddr_t *)fp; /* the caller's ebp, the return address */

		printf("#%d 0x%lx\n", depth++, record[1]);
		low = fp + 1;
		fp = record[0];
	}
}
