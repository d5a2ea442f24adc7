/* AArch64: the number in x8, the carry flag for an error (FreeBSD). */
#include "sys/syscall.h"

	.text

.macro stub number, name
	.globl	\name
	.type	\name, @function
\name:
	mov	x8, #\number
	svc	#0
	b.cs	cerror
	ret
	.size	\name, . - \name
.endm

	.type	cerror, @function
cerror:
	stp	x0, x30, [sp, #-16]!
	bl	__error
	ldp	x1, x30, [sp], #16
	str	w1, [x0]
	mov	x0, #-1
	ret
	.size	cerror, . - cerror

#define exit _exit
#define fork __fork
#define break __break
#define SYSCALL(number, name) stub number, name
#include "sys/syscalls.def"

	.globl	syscall
	.type	syscall, @function
/* int syscall(int number, ...): the arguments move up by one. */
syscall:
	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	svc	#0
	b.cs	cerror
	ret
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
