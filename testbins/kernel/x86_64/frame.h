/*
 * The trap frame. exception.S saves every register in it; the fields and their order are FreeBSD's
 * (sys/x86/include/frame.h), without the segment selectors that never change here.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

struct trapframe {
	uint64_t tf_rdi, tf_rsi, tf_rdx, tf_rcx, tf_r8, tf_r9, tf_rax, tf_rbx, tf_rbp;
	uint64_t tf_r10, tf_r11, tf_r12, tf_r13, tf_r14, tf_r15;
	uint64_t tf_trapno; /* trap.h */
	uint64_t tf_addr;   /* of a page fault */
	uint64_t tf_err;    /* from here on the processor pushed; the error code only for some exceptions */
	uint64_t tf_rip, tf_cs, tf_rflags, tf_rsp, tf_ss;
};

#endif
