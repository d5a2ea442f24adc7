/* The registers of an interrupted context, in FreeBSD's order (sys/riscv/include/frame.h). */
#ifndef RISCV64_FRAME_H
#define RISCV64_FRAME_H

#include "sys/types.h"

struct trapframe {
	uint64_t tf_ra;
	uint64_t tf_sp;
	uint64_t tf_gp;
	uint64_t tf_tp;
	uint64_t tf_t[7];
	uint64_t tf_s[12];
	uint64_t tf_a[8];
	uint64_t tf_sepc;
	uint64_t tf_sstatus;
	uint64_t tf_stval;
	uint64_t tf_scause;
	uint64_t tf_padding; /* the stack stays a multiple of 16 */
};

#endif
