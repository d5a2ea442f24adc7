/* The signal trampoline: user text, copied to SHAREDPAGE (FreeBSD sys/riscv/riscv/locore.S, sigcode). */
#include "assym.h"
#include "sys/syscall.h"

	.section .rodata
	.balign	8
	.globl	sigcode, esigcode
sigcode:
	ld	t0, 0(sp)		/* the handler; its arguments are in place */
	jalr	t0
	addi	a0, sp, SIGFRAME_CONTEXT
	li	t0, SYS_sigreturn
	ecall
	ebreak				/* sigreturn comes back only if the frame was spoilt */
esigcode:
