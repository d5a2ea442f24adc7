/*
 * The trap frame.  exception.S saves every register in it; the fields and their order are FreeBSD's
 * (sys/x86/include/frame.h), without the segment selectors a flat kernel never changes.
 */
#ifndef _MACHINE_FRAME_H_
#define _MACHINE_FRAME_H_

#define	TF_RDI		0
#define	TF_RSI		8
#define	TF_RDX		16
#define	TF_RCX		24
#define	TF_R8		32
#define	TF_R9		40
#define	TF_RAX		48
#define	TF_RBX		56
#define	TF_RBP		64
#define	TF_R10		72
#define	TF_R11		80
#define	TF_R12		88
#define	TF_R13		96
#define	TF_R14		104
#define	TF_R15		112
#define	TF_TRAPNO	120
#define	TF_ADDR		128
/* From here on the processor has pushed: the error code if the vector has one, then always rip to ss. */
#define	TF_ERR		136
#define	TF_RIP		144
#define	TF_CS		152
#define	TF_RFLAGS	160
#define	TF_RSP		168
#define	TF_SS		176
#define	TF_SIZE		184

#ifndef __ASSEMBLER__
#include <stdint.h>

struct trapframe {
	uint64_t tf_rdi, tf_rsi, tf_rdx, tf_rcx, tf_r8, tf_r9, tf_rax, tf_rbx, tf_rbp;
	uint64_t tf_r10, tf_r11, tf_r12, tf_r13, tf_r14, tf_r15;
	uint64_t tf_trapno;		/* T_..., see machine.h */
	uint64_t tf_addr;		/* cr2, if a page fault */
	uint64_t tf_err;
	uint64_t tf_rip, tf_cs, tf_rflags, tf_rsp, tf_ss;
};

_Static_assert(__builtin_offsetof(struct trapframe, tf_r15) == TF_R15, "frame.h: TF_R15");
_Static_assert(__builtin_offsetof(struct trapframe, tf_rip) == TF_RIP, "frame.h: TF_RIP");
_Static_assert(sizeof(struct trapframe) == TF_SIZE, "frame.h: TF_SIZE");
#endif /* !__ASSEMBLER__ */
#endif /* !_MACHINE_FRAME_H_ */
