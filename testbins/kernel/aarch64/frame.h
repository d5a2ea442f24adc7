/*
 * The trap frame.  exception.S saves every register in it; the fields and their order are FreeBSD's
 * (sys/arm64/include/frame.h).
 */
#ifndef _MACHINE_FRAME_H_
#define _MACHINE_FRAME_H_

#define	TF_SP		0
#define	TF_LR		8
#define	TF_ELR		16
#define	TF_SPSR		24
#define	TF_ESR		32
#define	TF_FAR		40
#define	TF_X		48
#define	TF_SIZE		304		/* a multiple of 16: sp may not be anything else */

#ifndef __ASSEMBLER__
#include <stdint.h>

struct trapframe {
	uint64_t tf_sp, tf_lr;
	uint64_t tf_elr, tf_spsr;
	uint64_t tf_esr, tf_far;
	uint64_t tf_x[30];
	uint64_t tf_pad;
} __attribute__((aligned(16)));

_Static_assert(__builtin_offsetof(struct trapframe, tf_esr) == TF_ESR, "frame.h: TF_ESR");
_Static_assert(__builtin_offsetof(struct trapframe, tf_x) == TF_X, "frame.h: TF_X");
_Static_assert(sizeof(struct trapframe) == TF_SIZE, "frame.h: TF_SIZE");
#endif /* !__ASSEMBLER__ */
#endif /* !_MACHINE_FRAME_H_ */
