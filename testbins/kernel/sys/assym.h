/*
 * Structure offsets for assembly. Compiled to assembly text, from which the Makefile takes
 * the lines between the marks; FreeBSD's genassym.sh does the same from an object file.
 */
#ifndef SYS_ASSYM_H
#define SYS_ASSYM_H

#include "sys/machine_interface.h"

#define ASSYM(name, value) __asm__ volatile("\n@assym " #name " %0 @" ::"i"((long)(value)))

/* The constants every ISA uses: to be called from the function in genassym.c. */
static inline void
assym_shared(void)
{
	ASSYM(PC_CURTHREAD, offsetof(struct pcpu, pc_curthread));
	ASSYM(PC_SCRATCH, offsetof(struct pcpu, pc_scratch));
	ASSYM(TD_PCB, offsetof(struct thread, td_pcb));
	ASSYM(TD_FRAME, offsetof(struct thread, td_frame));
	ASSYM(TD_KSTACK, offsetof(struct thread, td_kstack));
	ASSYM(TD_KSTACK_SIZE, offsetof(struct thread, td_kstack_size));
	ASSYM(TF_SIZE, sizeof(struct trapframe));
	ASSYM(PAGE_SIZE, PAGE_SIZE);
	ASSYM(KSTACK_SIZE, KSTACK_SIZE);
	ASSYM(KSTACK0_SIZE, sizeof(kstack0));
	ASSYM(SIGFRAME_CONTEXT, SIGFRAME_CONTEXT);
	ASSYM(KERNBASE, KERNBASE);
	ASSYM(KERNEL_PHYSICAL, KERNEL_PHYSICAL);
}

#endif
