/* RISC-V: the number in t0, the error in t0 (FreeBSD). */
#include "sys/syscall.h"

	.text

.macro stub number, name
	.globl	\name
	.type	\name, @function
\name:
	li	t0, \number
	ecall
	bnez	t0, cerror
	ret
	.size	\name, . - \name
.endm

	.type	cerror, @function
cerror:
	addi	sp, sp, -16
	sd	a0, 0(sp)
	sd	ra, 8(sp)
	call	__error
	ld	a1, 0(sp)
	ld	ra, 8(sp)
	addi	sp, sp, 16
	sw	a1, 0(a0)
	li	a0, -1
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
	mv	t0, a0
	mv	a0, a1
	mv	a1, a2
	mv	a2, a3
	mv	a3, a4
	ecall
	bnez	t0, cerror
	ret
	.size	syscall, . - syscall

	.section .note.GNU-stack, "", @progbits
