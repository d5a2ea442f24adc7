/* x86-64: the number in rax, the fourth argument in r10, the carry flag for an error (FreeBSD). */
#include "sys/syscall.h"

	.text
	.globl	_start
	.type	_start, @function
/* rdi = argc, rsi = argv, rdx = envp; the stack is aligned, and a call leaves it as the ABI wants it. */
_start:
	xorl	%ebp, %ebp		/* stack traces end here */
	call	__libc_start
	int3
	.size	_start, . - _start

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
	movl	%eax, errno(%rip)
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
