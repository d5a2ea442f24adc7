/* The common declarations of the files of this folder. */
#ifndef MACHDEP_H
#define MACHDEP_H

#include "frame.h"
#include "sys/param.h"
#include "sys/types.h"
#include "x86/descriptors.h"

/* Slots of pcpu0.pc_scratch, which the entry code reaches through gs. */
enum {
	SCRATCH_RSP,  /* the user's rsp on the way into a system call */
	SCRATCH_RSP0, /* the stack a system call starts on: the same as tss_rsp0 */
};

/* The 64-bit task state segment: only its stack pointers mean anything (Intel SDM volume 3, 8.7). */
struct tss {
	uint32_t tss_rsvd0;
	uint64_t tss_rsp0; /* stack of a trap from user mode */
	uint64_t tss_rsp1, tss_rsp2;
	uint64_t tss_rsvd1;
	uint64_t tss_ist[7];
	uint64_t tss_rsvd2;
	uint16_t tss_rsvd3, tss_iobase;
} __attribute__((packed));

extern struct tss common_tss;

/* A descriptor table register: the operand of lgdt and lidt. */
struct region_descriptor {
	uint16_t rd_limit;
	uint64_t rd_base;
} __attribute__((packed));

/* The field of a register in the trap frame and in the pcb, by the part of its name that both x86 share. */
#define TF_REG(name) tf_r##name
#define PCB_REG(name) pcb_r##name
#define pcb_function pcb_r12 /* where fork_trampoline finds the function to call */

/* The result of a system call. */
static inline void
frame_set_result(struct trapframe *frame, uint64_t value)
{
	frame->tf_rax = value;
}

static inline void
frame_set_flags(struct trapframe *frame, vaddr_t flags)
{
	frame->tf_rflags = flags;
	frame->tf_r11 = flags; /* sysretq takes them from there */
}

static inline void
frame_set_fault_address(struct trapframe *frame, vaddr_t address)
{
	frame->tf_addr = address;
}

void lgdt(const struct region_descriptor *gdt); /* reloads every segment register */
void fork_trampoline(void);
void fast_syscall(void);
void trap(struct trapframe *frame);

#endif
