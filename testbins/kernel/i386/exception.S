/*
 * Traps, interrupts and system calls: build the trap frame, call C, restore.
 */
#include "asmacros.h"
#include "segments.h"
#include "trap.h"

	.macro	SAVE_REGISTERS
	pushal
	pushl	%ds
	pushl	%es
	pushl	%fs
	cld
	.endm

	/* From a program: its data segments may be anything, and the walk of kernel frames ends here. */
	.macro	KERNEL_SEGMENTS
	movl	$SEL_KDATA, %eax
	movl	%eax, %ds
	movl	%eax, %es
	xorl	%ebp, %ebp
	.endm

/*
 * A vector. The processor has pushed eflags, cs, eip (from user mode ss and esp before them) and, for some exceptions,
 * an error code; push one for the others so that all frames look alike.
 */
	.macro	IDTVEC name, trapno, error=0
ENTRY(X\name)
	.if	\error == 0
	pushl	$0
	.endif
	pushl	$\trapno
	jmp	alltraps
END(X\name)
	.endm

	IDTVEC	div, T_DIVIDE
	IDTVEC	dbg, T_TRCTRAP
	IDTVEC	nmi, T_NMI
	IDTVEC	bpt, T_BPTFLT
	IDTVEC	ofl, T_OFLOW
	IDTVEC	bnd, T_BOUND
	IDTVEC	ill, T_PRIVINFLT
	IDTVEC	dna, T_DNA
	IDTVEC	tss, T_TSSFLT, 1
	IDTVEC	missing, T_SEGNPFLT, 1
	IDTVEC	stk, T_STKFLT, 1
	IDTVEC	prot, T_PROTFLT, 1
	IDTVEC	page, T_PAGEFLT, 1
	IDTVEC	fpu, T_ARITHTRAP
	IDTVEC	align, T_ALIGNFLT, 1
	IDTVEC	mchk, T_MCHK
	IDTVEC	xmm, T_XMMFLT
	IDTVEC	rsvd, T_RESERVED

ENTRY(alltraps)
	SAVE_REGISTERS
	testb	$SEL_RPL_MASK, TF_CS(%esp)
	jnz	1f
	/* An undefined instruction of the kernel's own is offered to DTrace first. */
	cmpl	$T_PRIVINFLT, TF_TRAPNO(%esp)
	je	dtrace_invop_start
#ifdef SMP
	/* So is a breakpoint, which is a trap: eip is behind it. Code that is being changed has one (smp/alternative.c). */
	cmpl	$T_BPTFLT, TF_TRAPNO(%esp)
	jne	calltrap
	decl	TF_EIP(%esp)
	jmp	dtrace_invop_start
#endif
	jmp	calltrap
1:	KERNEL_SEGMENTS
	.globl	calltrap
calltrap:
	pushl	%esp
	call	trap
	addl	$4, %esp
	/* FALLTHROUGH */
END(alltraps)

/*
 * Return to wherever the frame at esp came from.
 */
ENTRY(doreti)
	RESTORE_REGISTERS
	addl	$8, %esp		/* trapno, err */
	iret
END(doreti)

/*
 * The clock. It comes from user mode or from cpu_idle.
 */
ENTRY(Xtimerint)
	pushl	$0
	pushl	$0
	SAVE_REGISTERS
	testb	$SEL_RPL_MASK, TF_CS(%esp)
	jz	1f
	KERNEL_SEGMENTS
1:	pushl	%esp
	call	hardclock
	addl	$4, %esp
	jmp	doreti
END(Xtimerint)

/*
 * int $0x80, FreeBSD's way in: the number in eax, the arguments on the user's stack.
 */
ENTRY(Xint0x80_syscall)
	pushl	$2			/* length of the instruction, as FreeBSD has it (sys/i386/i386/exception.s) */
	pushl	$0
	SAVE_REGISTERS
	KERNEL_SEGMENTS
	pushl	%esp
	call	syscall
	addl	$4, %esp
	jmp	doreti
END(Xint0x80_syscall)

/*
 * A double fault is a task of its own, on a stack of its own: the one it happened on is likely the reason.
 */
ENTRY(Xdblfault)
	xorl	%ebp, %ebp
	call	dblfault_handler
	ud2
END(Xdblfault)

/*
 * cpu_user_enter(frame): the kernel stack above the frame is given up.
 */
ENTRY(cpu_user_enter)
	movl	4(%esp), %esp
	jmp	doreti
END(cpu_user_enter)
