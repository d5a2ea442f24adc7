/*
 * The trap frame. exception.S saves every register in it; the fields and their order are FreeBSD's
 * (sys/x86/include/frame.h): pushal in the middle, what the processor pushes at the end. A trap from kernel mode has
 * no tf_esp and tf_ss: the interrupted stack continues there.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

struct trapframe {
	uint32_t tf_fs, tf_es, tf_ds;
	uint32_t tf_edi, tf_esi, tf_ebp;
	uint32_t tf_isp; /* esp as pushal saw it: of no use */
	uint32_t tf_ebx, tf_edx, tf_ecx, tf_eax;
	uint32_t tf_trapno; /* trap.h */
	uint32_t tf_err;    /* from here on the processor pushed; the error code only for some exceptions */
	uint32_t tf_eip, tf_cs, tf_eflags;
	uint32_t tf_esp, tf_ss; /* from user mode */
};

#endif
