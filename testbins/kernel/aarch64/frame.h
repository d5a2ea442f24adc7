/*
 * The trap frame. exception.S saves every register in it; the fields and their order are FreeBSD's
 * (sys/arm64/include/frame.h). On the stack it has to be a multiple of 16 bytes, because sp has to.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stdint.h>

struct trapframe {
	uint64_t tf_sp, tf_lr;
	uint64_t tf_elr, tf_spsr;
	uint64_t tf_esr, tf_far;
	uint64_t tf_x[30];
	uint64_t tf_pad;
} __attribute__((aligned(16)));

#endif
