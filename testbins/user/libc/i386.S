/* i386: the number in eax, the arguments on the stack, the carry flag for an error (FreeBSD). */
#include "sys/syscall.h"

	.text

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
	pushl	%eax
	pushl	%ebx
	call	1f
1:	popl	%ebx
	addl	$_GLOBAL_OFFSET_TABLE_ + (. - 1b), %ebx
	call	__error@PLT
	popl	%ebx
	popl	%ecx
	movl	%ecx, (%eax)
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
