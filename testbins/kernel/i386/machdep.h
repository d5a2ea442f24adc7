/* The common declarations of the files of this folder. */
#ifndef MACHDEP_H
#define MACHDEP_H

#include "frame.h"
#include "sys/param.h"
#include "sys/types.h"
#include "x86/descriptors.h"

/* The 32-bit task state segment (Intel SDM volume 3, 8.2.1). */
struct tss {
	uint32_t tss_link;
	uint32_t tss_esp0, tss_ss0; /* stack of a trap from user mode */
	uint32_t tss_esp1, tss_ss1, tss_esp2, tss_ss2;
	uint32_t tss_cr3, tss_eip, tss_eflags;
	uint32_t tss_eax, tss_ecx, tss_edx, tss_ebx, tss_esp, tss_ebp, tss_esi, tss_edi;
	uint32_t tss_es, tss_cs, tss_ss, tss_ds, tss_fs, tss_gs;
	uint32_t tss_ldt;
	uint16_t tss_trap, tss_iobase;
};

extern struct tss common_tss;

/* A descriptor table register: the operand of lgdt and lidt. */
struct region_descriptor {
	uint16_t rd_limit;
	uint32_t rd_base;
} __attribute__((packed));

/* The field of a register in the trap frame and in the pcb, by the part of its name that both x86 share. */
#define TF_REG(name) tf_e##name
#define PCB_REG(name) pcb_e##name
#define pcb_function pcb_esi /* where fork_trampoline finds the function to call */

/* The result of a system call: two registers hold 64 bits. */
static inline void
frame_set_result(struct trapframe *frame, uint64_t value)
{
	frame->tf_eax = value;
	frame->tf_edx = value >> 32;
}

static inline void
frame_set_flags(struct trapframe *frame, vaddr_t flags)
{
	frame->tf_eflags = flags;
}

static inline void
frame_set_fault_address(struct trapframe *frame __unused, vaddr_t address __unused)
{
	/* the frame has no field for it: cr2 alone has the address */
}

void lgdt(const struct region_descriptor *gdt); /* reloads every segment register */
void fork_trampoline(void);
void dblfault_handler(void) __dead2;
void trap(struct trapframe *frame);

#endif
