/* The descriptor tables of long mode: segments, interrupt gates, the task state segment; and the system call entry. */
#include "machdep.h"

#include "cpufunc.h"
#include "segments.h"
#include "specialreg.h"
#include "sys/machine_interface.h"

#define IST_DBLFAULT 1

struct gate_descriptor {
	uint16_t gd_looffset, gd_selector;
	uint8_t gd_ist, gd_type;
	uint16_t gd_midoffset;
	uint32_t gd_hioffset, gd_rsvd;
};

extern inthand_t Xdblfault;

static struct gate_descriptor idt[IDT_CLOCK + 1];
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

void
setidt(int vector, inthand_t *handler, int dpl)
{
	vaddr_t address = (vaddr_t)handler;

	idt[vector] = (struct gate_descriptor){
		.gd_looffset = address,
		.gd_selector = SEL_KCODE,
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
descriptors_init(void)
{
	const struct region_descriptor gdt_region = { sizeof(gdt) - 1, (vaddr_t)gdt };
	const struct region_descriptor idt_region = { sizeof(idt) - 1, (vaddr_t)idt };

	/* A stack of its own: the one that the double fault happened on is likely the reason for it. */
	common_tss.tss_ist[IST_DBLFAULT - 1] = (vaddr_t)dblfault_stack + sizeof(dblfault_stack);
	setidt(IDT_DBLFAULT, Xdblfault, 0);
	idt[IDT_DBLFAULT].gd_ist = IST_DBLFAULT;

	set_tss_descriptor((vaddr_t)&common_tss);
	lgdt(&gdt_region);
	__asm__ volatile("ltr %0" ::"r"((uint16_t)SEL_TSS));
	__asm__ volatile("lidt %0" ::"m"(idt_region));

	wrmsr(MSR_GSBASE, (vaddr_t)&pcpu0);
	wrmsr(MSR_KGSBASE, 0);
	wrmsr(MSR_STAR, (uint64_t)SEL_USTAR << 48 | (uint64_t)SEL_KCODE << 32);
	wrmsr(MSR_LSTAR, (vaddr_t)fast_syscall);
	wrmsr(MSR_SFMASK, PSL_I | PSL_T | PSL_D | PSL_NT | PSL_AC);
}
