/* x86-64: the number in rax, the fourth argument in r10, the carry flag for an error (FreeBSD). */
#include "sys/syscall.h"

	.text

.macro stub number, name
	.globl	\name
	.type	\name, @function
\name:
	movl	$\number, %eax
	movq	%rcx, %r10
	syscall
	jc	cerror
	ret
	.size	\name, . - \name
.endm

	.type	cerror, @function
cerror:
	pushq	%rax
	call	__error@PLT
	popq	%rcx
	movl	%ecx, (%rax)
	movq	$-1, %rax
	ret
	.size	cerror, . - cerror

#define exit _exit
#define fork __fork
#define break __break
#define vfork __vfork_unused
#define SYSCALL(number, name) stub number, name
#include "sys/syscalls.def"
#undef vfork

	.globl	syscall
	.type	syscall, @function
/* int syscall(int number, ...): the arguments move up by one. */
syscall:
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	syscall
	jc	cerror
	ret
	.size	syscall, . - syscall

	.globl	vfork
	.type	vfork, @function
/* The child runs on this stack and spoils the return address: keep it in a register meanwhile. */
vfork:
	popq	%rsi
	movl	$SYS_vfork, %eax
	syscall
	pushq	%rsi
	jc	cerror
	ret
	.size	vfork, . - vfork

	.section .note.GNU-stack, "", @progbits
