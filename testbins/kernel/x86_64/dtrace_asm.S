/*
 * A breakpoint in kernel text (FreeBSD: sys/cddl/dev/dtrace/amd64/dtrace_asm.S). DTrace says what the instruction it
 * displaced was, and that instruction is done here on the interrupted context.
 */
#include "asmacros.h"
#include "trap.h"

/* What dtrace_invop answers (FreeBSD: sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h). */
#define DTRACE_INVOP_PUSHQ_RBP 1
#define DTRACE_INVOP_LEAVE 3
#define DTRACE_INVOP_NOP 4
#define DTRACE_INVOP_RET 5
#define DTRACE_INVOP_CALL 6

/*
 * Comes from alltraps with the frame at rsp, all registers saved, interrupts off.
 *
 * rip points behind the one-byte int3, which is also where a one-byte instruction ends: only `ret' and `call' go
 * elsewhere.
 *
 * In long mode the processor aligns rsp down to 16 bytes and then pushes ss, rsp, rflags, cs and rip, on the same
 * stack. So the word below the interrupted rsp is either the gap left by the alignment or the pushed ss itself, and
 * an instruction that pushes has to write exactly there. The answer: move the five pushed words down by one, over
 * the error code, which is not needed any more, and return from there.
 */
ENTRY(dtrace_invop_start)
	movq	TF_RIP(%rsp), %rdi
	decq	%rdi			/* address of the int3 */
	movq	%rsp, %rsi
	subq	$24, %rsp		/* two words of scratch, and one to align the stack */
	movq	%rsp, %rdx
	call	dtrace_invop
	movq	(%rsp), %rcx		/* return address of a displaced call */
	addq	$24, %rsp

	cmpl	$DTRACE_INVOP_PUSHQ_RBP, %eax
	je	bp_push
	cmpl	$DTRACE_INVOP_LEAVE, %eax
	je	bp_leave
	cmpl	$DTRACE_INVOP_NOP, %eax
	je	bp_nop
	cmpl	$DTRACE_INVOP_RET, %eax
	je	bp_ret
	cmpl	$DTRACE_INVOP_CALL, %eax
	je	bp_call
#if defined(SDT_GENERATION) && SDT_GENERATION == 2005
	cmpl	$T_PRIVINFLT, TF_TRAPNO(%rsp)
	jne	calltrap
	decq	TF_RIP(%rsp)		/* a genuine invalid opcode: back to it */
#endif
	jmp	calltrap		/* not DTrace's: a genuine breakpoint */

bp_push:
	movq	TF_RBP(%rsp), %rcx
	/* FALLTHROUGH */
bp_call:				/* the handler has set rip to the callee */
	movq	TF_RSP(%rsp), %rdx
	subq	$8, %rdx		/* the interrupted rsp, with room for one word more */
	.irp	field, TF_RIP, TF_CS, TF_RFLAGS
	movq	\field(%rsp), %rax
	movq	%rax, \field-8(%rsp)
	.endr
	movq	%rdx, TF_RSP-8(%rsp)
	movq	TF_SS(%rsp), %rax
	movq	%rax, TF_SS-8(%rsp)
	movq	%rcx, (%rdx)		/* only now: this may have been the pushed ss */
	RESTORE_REGISTERS
	addq	$TF_RIP-8, %rsp
	jmp	dtrace_invop_return

bp_leave:
	movq	TF_RBP(%rsp), %rdx
	movq	(%rdx), %rax
	movq	%rax, TF_RBP(%rsp)
	addq	$8, %rdx
	movq	%rdx, TF_RSP(%rsp)
	jmp	bp_nop

bp_ret:
	movq	TF_RSP(%rsp), %rdx
	movq	(%rdx), %rax
	movq	%rax, TF_RIP(%rsp)
	addq	$8, TF_RSP(%rsp)
	/* FALLTHROUGH */
bp_nop:
	RESTORE_REGISTERS
	addq	$TF_RIP, %rsp
	.globl	dtrace_invop_return
dtrace_invop_return:
	iretq
END(dtrace_invop_start)
