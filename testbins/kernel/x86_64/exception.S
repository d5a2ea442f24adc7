/*
 * Traps, interrupts and system calls: build the trap frame, call C, restore.
 *
 * gs belongs to the kernel while it runs, to the user otherwise: swapgs is due exactly when the frame's cs is a user
 * selector. Only this file uses gs, so a breakpoint in C code never sees the wrong one.
 */
#include "asmacros.h"
#include "segments.h"
#include "trap.h"

	.macro	SAVE_REGISTERS
	movq	%rdi, TF_RDI(%rsp)
	movq	%rsi, TF_RSI(%rsp)
	movq	%rdx, TF_RDX(%rsp)
	movq	%rcx, TF_RCX(%rsp)
	movq	%r8, TF_R8(%rsp)
	movq	%r9, TF_R9(%rsp)
	movq	%rax, TF_RAX(%rsp)
	movq	%rbx, TF_RBX(%rsp)
	movq	%rbp, TF_RBP(%rsp)
	movq	%r10, TF_R10(%rsp)
	movq	%r11, TF_R11(%rsp)
	movq	%r12, TF_R12(%rsp)
	movq	%r13, TF_R13(%rsp)
	movq	%r14, TF_R14(%rsp)
	movq	%r15, TF_R15(%rsp)
	cld
	.endm

/*
 * A vector. The processor has pushed ss, rsp, rflags, cs, rip and, for some exceptions, an error code; push one for
 * the others so that all frames look alike.
 */
	.macro	IDTVEC name, trapno, error=0
ENTRY(X\name)
	.if	\error
	subq	$TF_ERR, %rsp
	.else
	subq	$TF_RIP, %rsp
	movq	$0, TF_ERR(%rsp)
	.endif
	movq	$\trapno, TF_TRAPNO(%rsp)
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
	IDTVEC	dblfault, T_DOUBLEFLT, 1
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
	movq	$0, TF_ADDR(%rsp)
	testb	$SEL_RPL_MASK, TF_CS(%rsp)
	jnz	1f
	/* A breakpoint of the kernel's own is offered to DTrace first. */
	cmpl	$T_BPTFLT, TF_TRAPNO(%rsp)
	je	dtrace_invop_start
#if defined(SDT_GENERATION) && SDT_GENERATION == 2005
	/* So is an invalid opcode on illumos; let the frame look as an int3's does. */
	cmpl	$T_PRIVINFLT, TF_TRAPNO(%rsp)
	jne	calltrap
	incq	TF_RIP(%rsp)
	jmp	dtrace_invop_start
#endif
	jmp	calltrap
1:	swapgs
	xorl	%ebp, %ebp		/* the walk of kernel frames ends here */
	.globl	calltrap
calltrap:
	movq	%rsp, %rdi
	subq	$8, %rsp		/* the C calling convention requires rsp at a multiple of 16 */
	call	trap
	addq	$8, %rsp
	/* FALLTHROUGH */
END(alltraps)

/*
 * Return to wherever the frame at rsp came from.
 */
ENTRY(doreti)
	testb	$SEL_RPL_MASK, TF_CS(%rsp)
	jz	1f
	swapgs
1:	RESTORE_REGISTERS
	addq	$TF_RIP, %rsp
	iretq
END(doreti)

/*
 * The clock. It comes from user mode or from cpu_idle.
 */
ENTRY(Xtimerint)
	subq	$TF_RIP, %rsp
	movq	$0, TF_TRAPNO(%rsp)
	movq	$0, TF_ADDR(%rsp)
	movq	$0, TF_ERR(%rsp)
	SAVE_REGISTERS
	testb	$SEL_RPL_MASK, TF_CS(%rsp)
	jz	1f
	swapgs
	xorl	%ebp, %ebp
1:	movq	%rsp, %rdi
	subq	$8, %rsp
	call	hardclock
	addq	$8, %rsp
	jmp	doreti
END(Xtimerint)

/*
 * LSTAR. The processor has put rip in rcx and rflags in r11, and has loaded the kernel's cs and ss; rsp is still the
 * user's. Interrupts are off (SFMASK).
 */
ENTRY(fast_syscall)
	swapgs
	movq	%rsp, %gs:PC_SCRATCH_RSP
	movq	%gs:PC_RSP0, %rsp
	subq	$TF_SIZE, %rsp
	movq	$SEL_UDATA, TF_SS(%rsp)
	movq	$SEL_UCODE, TF_CS(%rsp)
	movq	%rcx, TF_RIP(%rsp)
	movq	%r11, TF_RFLAGS(%rsp)
	movq	$2, TF_ERR(%rsp)	/* length of the instruction, as FreeBSD has it (sys/amd64/amd64/exception.S) */
	movq	$0, TF_ADDR(%rsp)
	movq	$0, TF_TRAPNO(%rsp)
	SAVE_REGISTERS
	movq	%gs:PC_SCRATCH_RSP, %rax
	movq	%rax, TF_RSP(%rsp)
	xorl	%ebp, %ebp
	movq	%rsp, %rdi
	subq	$8, %rsp
	call	syscall
	addq	$8, %rsp
	/*
	 * sysretq can only return where it came from: it takes rip from rcx and rflags from r11. A new image or a
	 * signal handler begins with other registers and needs iretq.
	 */
	movq	TF_RCX(%rsp), %rcx
	cmpq	%rcx, TF_RIP(%rsp)
	jne	doreti
	movq	TF_R11(%rsp), %r11
	cmpq	%r11, TF_RFLAGS(%rsp)
	jne	doreti
	swapgs
	RESTORE_REGISTERS
	movq	TF_RSP(%rsp), %rsp
	sysretq
END(fast_syscall)

/*
 * cpu_user_enter(frame): the kernel stack above the frame is given up.
 */
ENTRY(cpu_user_enter)
	movq	%rdi, %rsp
	jmp	doreti
END(cpu_user_enter)
