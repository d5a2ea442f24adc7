/* The descriptor tables of protected mode: segments, interrupt gates, and two tasks: all there is, and the double fault. */
#include "machdep.h"

#include "cpufunc.h"
#include "segments.h"
#include "specialreg.h"
#include "sys/machine_interface.h"

#define IDT_SYSCALL 0x80
#define SDT_TASK 0x85 /* present, another task */

struct gate_descriptor {
	uint16_t gd_looffset, gd_selector;
	uint8_t gd_stkcpy, gd_type;
	uint16_t gd_hioffset;
};

extern inthand_t Xdblfault, Xrsvd, Xint0x80_syscall;

static struct tss dblfault_tss;
static struct gate_descriptor idt[IDT_SYSCALL + 1];
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

void
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

/* Another task, because the stack that the double fault happened on is likely the reason for it. */
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
descriptors_init(void)
{
	const struct region_descriptor gdt_region = { sizeof(gdt) - 1, (vaddr_t)gdt };
	const struct region_descriptor idt_region = { sizeof(idt) - 1, (vaddr_t)idt };

	common_tss.tss_ss0 = SEL_KDATA;
	set_tss_descriptor(SEL_TSS, &common_tss);
	for (int vector = IDT_CLOCK + 1; vector < IDT_SYSCALL; vector++)
		setidt(vector, Xrsvd, 0);
	setidt(IDT_SYSCALL, Xint0x80_syscall, SDT_DPL3);
	dblfault_init();
	lgdt(&gdt_region);
	__asm__ volatile("ltr %0" ::"r"((uint16_t)SEL_TSS));
	__asm__ volatile("lidt %0" ::"m"(idt_region));
}

/* The registers are in the task that the processor could not continue. */
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
