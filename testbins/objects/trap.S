/*
 * A handler of a kernel's breakpoints as FreeBSD's of x86: assembly that does the displaced instruction and returns
 * from the trap, for tests of `trapline check --object`. trapframe.h has the structure of the trap frame.
 *
 * BUGGY adds mistakes: a register that is not restored, a stack pointer that stays, an instruction that is done again.
 */

/* What dtrace_invop answers. */
#define PUSH 1
#define POP 2
#define LEAVE 3
#define NOP 4
#define RET 5
#define CALL 6

	.section .note.GNU-stack, "", @progbits
	.text
#ifdef ILLUMOS
#define NAME invoptrap
#define OTHERS jmp cmntrap
#else
#define NAME dtrace_invop_start
#define OTHERS jmp *dtrace_invop_calltrap_addr
#endif
	.globl	NAME
	.type	NAME, @function
NAME:

#ifdef __x86_64__
#ifdef ILLUMOS
#define REGISTERS rdi, rsi, rdx, rcx, r8, r9, rax, rbx, rbp, r10, r11, r12, r13, r14, r15
#define RAX 48
#define RBP 64
#define RIP 128
#else
#define REGISTERS rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
#define RBP 48
#define RIP 136
#endif
#define CS RIP+8
#define FLAGS RIP+16
#define RSP RIP+24
#define SS RIP+32

.macro	restore
	.set	offset, 0
	.irp	register, REGISTERS
#ifdef BUGGY
	.ifnc	\register, r11
#endif
	movq	offset(%rsp), %\register
#ifdef BUGGY
	.endif
#endif
	.set	offset, offset + 8
	.endr
.endm

	/* The rip in the frame is behind the int3, and a one-byte instruction ends there, too. */
#ifdef ILLUMOS
	.globl	brktrap
brktrap:
	pushq	$0
	.irp	register, r15, r14, r13, r12, r11, r10, rbp, rbx, rax, r9, r8, rcx, rdx, rsi, rdi
	pushq	%\register
	.endr
	movq	RIP(%rsp), %rdi
	decq	%rdi
	movq	RAX(%rsp), %rdx
	movq	RSP(%rsp), %rax
	subq	$16, %rsp
	pushq	(%rax)
	movq	%rsp, %rsi
	call	dtrace_invop
	addq	$24, %rsp
#else
	movq	RIP(%rsp), %rdi
	decq	%rdi
	movq	%rsp, %rsi
	subq	$16, %rsp
	movq	%rsp, %rdx
	call	dtrace_invop
	movq	(%rsp), %rdi
	addq	$16, %rsp
#endif
	movq	RSP(%rsp), %rbx
	cmpl	$PUSH, %eax
	je	push
	cmpl	$CALL, %eax
	je	call
	cmpl	$LEAVE, %eax
	je	leave
	cmpl	$NOP, %eax
	je	back
	cmpl	$RET, %eax
	je	return
	OTHERS

push:
	movq	RBP(%rsp), %rdi
call:	/* The word for rdi may be the ss that the CPU has pushed: its words move down, over the error code. A call's
	   target is in the frame, and its return address was in the words for dtrace_invop. */
	.irp	field, RIP, CS, FLAGS
	movq	\field(%rsp), %rax
	movq	%rax, \field-8(%rsp)
	.endr
	movq	SS(%rsp), %rax
	subq	$8, %rbx
	movq	%rbx, RSP-8(%rsp)
	movq	%rax, SS-8(%rsp)
	movq	%rdi, (%rbx)
	restore
	addq	$RIP-8, %rsp
	iretq

leave:
	movq	RBP(%rsp), %rbx
	movq	(%rbx), %rax
	movq	%rax, RBP(%rsp)
	jmp	popped
return:
	movq	(%rbx), %rax
	movq	%rax, RIP(%rsp)
popped:
#ifndef BUGGY
	addq	$8, %rbx
#endif
	movq	%rbx, RSP(%rsp)
back:
	restore
	addq	$RIP, %rsp
	iretq

#else
#define SAVED_EBP 8
#define EIP 32
#define CS 36
#define FLAGS 40
#define WORDS 11

	/* The registers of pushal are at esp, and eip, cs and eflags above them; then comes the interrupted stack. */
#ifdef ILLUMOS
	pushal
	leal	FLAGS+4(%esp), %edx
#else
	movl	%esp, %edx
#endif
	movl	%esp, %ecx
	pushl	%eax
	pushl	%edx
	pushl	EIP(%ecx)
	call	dtrace_invop
	addl	$12, %esp
	cmpl	$PUSH, %eax
	je	push
	cmpl	$POP, %eax
	je	pop
	cmpl	$LEAVE, %eax
	je	leave
	cmpl	$NOP, %eax
	je	back
	OTHERS

push:	/* All words move down by one. */
	subl	$4, %esp
	leal	4(%esp), %esi
	movl	%esp, %edi
	movl	$WORDS, %ecx
	cld
	rep movsl
	movl	SAVED_EBP(%esp), %eax
	movl	%eax, FLAGS+4(%esp)
#ifdef BUGGY
	decl	EIP(%esp)
#endif
	jmp	back

pop:	/* All words move up by one, over the one that is popped. */
	movl	FLAGS+4(%esp), %eax
	movl	%eax, SAVED_EBP(%esp)
	leal	FLAGS(%esp), %esi
	leal	FLAGS+4(%esp), %edi
	movl	$WORDS, %ecx
	std
	rep movsl
	addl	$4, %esp
back:
	incl	EIP(%esp)
	popal
	iret

leave:	/* The words for iret move up to the saved frame pointer; the word of eip then holds their address. */
	movl	SAVED_EBP(%esp), %ebx
	movl	(%ebx), %eax
	movl	%eax, SAVED_EBP(%esp)
	movl	FLAGS(%esp), %eax
	movl	%eax, (%ebx)
	movl	CS(%esp), %eax
	movl	%eax, -4(%ebx)
	movl	EIP(%esp), %eax
	incl	%eax
	movl	%eax, -8(%ebx)
#ifdef BUGGY
	subl	$4, %ebx
#else
	subl	$8, %ebx
#endif
	movl	%ebx, EIP(%esp)
	popal
	movl	(%esp), %esp
	iret
#endif
	.size	NAME, . - NAME
