/*
 * An undefined instruction in kernel text (FreeBSD: sys/cddl/dev/dtrace/i386/dtrace_asm.S): DTrace puts a LOCK prefix
 * over a one-byte instruction. It says what that was, and the instruction is done here on the interrupted context.
 */
#include "asmacros.h"

/* What dtrace_invop answers (FreeBSD: sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h). */
#define DTRACE_INVOP_PUSHL_EBP 1
#define DTRACE_INVOP_POPL_EBP 2
#define DTRACE_INVOP_LEAVE 3
#define DTRACE_INVOP_NOP 4

/*
 * Comes from alltraps with the frame at esp, all registers saved, interrupts off.
 *
 * An exception in kernel mode changes no stack: the processor pushed eflags, cs and eip, and the interrupted stack
 * begins right above them, where the frame of a program has tf_esp. So an instruction that pushes or pops makes the
 * three words slide. eip still points at the instruction, one byte long whichever it is.
 */
ENTRY(dtrace_invop_start)
	movl	%esp, %ecx
	pushl	TF_EAX(%ecx)
	pushl	%ecx
	pushl	TF_EIP(%ecx)
	call	dtrace_invop
	addl	$12, %esp

	cmpl	$DTRACE_INVOP_PUSHL_EBP, %eax
	je	invop_push
	cmpl	$DTRACE_INVOP_POPL_EBP, %eax
	je	invop_pop
	cmpl	$DTRACE_INVOP_LEAVE, %eax
	je	invop_leave
	cmpl	$DTRACE_INVOP_NOP, %eax
	je	invop_nop
	jmp	calltrap		/* not DTrace's: a genuine undefined instruction */

invop_push:				/* down by a word, over the error code, which is not needed any more */
	incl	TF_EIP(%esp)
	.irp	field, TF_EIP, TF_CS, TF_EFLAGS
	movl	\field(%esp), %eax
	movl	%eax, \field-4(%esp)
	.endr
	movl	TF_EBP(%esp), %eax
	movl	%eax, TF_EFLAGS(%esp)
	RESTORE_REGISTERS
	addl	$4, %esp
	jmp	dtrace_invop_return

invop_pop:				/* up by a word, over what was popped */
	movl	TF_ESP(%esp), %eax
	movl	%eax, TF_EBP(%esp)
	incl	TF_EIP(%esp)
	.irp	field, TF_EFLAGS, TF_CS, TF_EIP
	movl	\field(%esp), %eax
	movl	%eax, \field+4(%esp)
	.endr
	RESTORE_REGISTERS
	addl	$12, %esp
	jmp	dtrace_invop_return

invop_leave:				/* up to the saved frame pointer and over it; the highest word first: they may overlap */
	incl	TF_EIP(%esp)
	movl	TF_EBP(%esp), %edx
	movl	(%edx), %eax
	movl	%eax, TF_EBP(%esp)
	movl	TF_EFLAGS(%esp), %eax
	movl	%eax, (%edx)
	movl	TF_CS(%esp), %eax
	movl	%eax, -4(%edx)
	movl	TF_EIP(%esp), %eax
	movl	%eax, -8(%edx)
	subl	$8, %edx
	movl	%edx, TF_TRAPNO(%esp)
	RESTORE_REGISTERS
	movl	(%esp), %esp
	jmp	dtrace_invop_return

invop_nop:
	incl	TF_EIP(%esp)
	RESTORE_REGISTERS
	addl	$8, %esp
	.globl	dtrace_invop_return
dtrace_invop_return:
	iret
END(dtrace_invop_start)
