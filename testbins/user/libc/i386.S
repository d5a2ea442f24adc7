/* i386: the number in eax, the arguments on the stack, the carry flag for an error (FreeBSD). */
#include "sys/syscall.h"

	.text
	.globl	_start
	.type	_start, @function
/* eax = argc, edx = argv, ecx = envp; the stack is aligned, and a call leaves it as the ABI wants it. */
_start:
	xorl	%ebp, %ebp		/* stack traces end here */
	pushl	%ebp
	pushl	%ecx
	pushl	%edx
	pushl	%eax
	call	__libc_start
	int3
	.size	_start, . - _start

.macro stub number, name
	.globl	\name
	.type	\name, @function
\name:
	movl	$\number, %eax
	int	$0x80
	jc	cerror
	ret
	.size	\name, . - \name
.endm

	.type	cerror, @function
cerror:
	movl	%eax, errno
	movl	$-1, %eax
	movl	$-1, %edx		/* of lseek, too */
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
/* int syscall(int number, ...): the number leaves the stack, and its place is given back afterwards. */
syscall:
	popl	%ecx
	popl	%eax
	pushl	%ecx
	int	$0x80
	pushl	%ecx
	jc	cerror
	ret
	.size	syscall, . - syscall

	.globl	vfork
	.type	vfork, @function
/* The child runs on this stack and spoils the return address: keep it in a register meanwhile. */
vfork:
	popl	%ecx
	movl	$SYS_vfork, %eax
	int	$0x80
	pushl	%ecx
	jc	cerror
	ret
	.size	vfork, . - vfork

	.section .note.GNU-stack, "", @progbits
