/* What every assembly file here uses. */
#ifndef ASMACROS_H
#define ASMACROS_H

#include "assym.h"

#define ENTRY(name) .text; .balign 16; .globl name; .type name, @function; name:
#define END(name) .size name, . - name
#define LONE_RETURN ret

	.macro	RESTORE_REGISTERS
	movq	TF_RDI(%rsp), %rdi
	movq	TF_RSI(%rsp), %rsi
	movq	TF_RDX(%rsp), %rdx
	movq	TF_RCX(%rsp), %rcx
	movq	TF_R8(%rsp), %r8
	movq	TF_R9(%rsp), %r9
	movq	TF_RAX(%rsp), %rax
	movq	TF_RBX(%rsp), %rbx
	movq	TF_RBP(%rsp), %rbp
	movq	TF_R10(%rsp), %r10
	movq	TF_R11(%rsp), %r11
	movq	TF_R12(%rsp), %r12
	movq	TF_R13(%rsp), %r13
	movq	TF_R14(%rsp), %r14
	movq	TF_R15(%rsp), %r15
	.endm

#endif
