/* Changing threads. */
#include "assym.h"

	.text
	.globl	cpu_switch
	.type	cpu_switch, @function
/* cpu_switch(old, new): returns in new, where new called it, or where cpu_thread_start put it. */
cpu_switch:
	sd	ra, (TD_PCB + PCB_RA)(a0)
	sd	sp, (TD_PCB + PCB_SP)(a0)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	sd	s\n, (TD_PCB + PCB_S + 8 * \n)(a0)
	.endr
	sd	a1, PC_CURTHREAD(tp)	/* together with the stack: the overflow check compares them */
	ld	ra, (TD_PCB + PCB_RA)(a1)
	ld	sp, (TD_PCB + PCB_SP)(a1)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	ld	s\n, (TD_PCB + PCB_S + 8 * \n)(a1)
	.endr
	ret
	.size cpu_switch, . - cpu_switch

	.globl	fork_trampoline
	.type	fork_trampoline, @function
/* A new thread's first instruction: s1 is the function, s2 its argument, s0 is 0 so that stack traces end. */
fork_trampoline:
	mv	a0, s2
	jalr	s1
	ebreak				/* it does not return; and a return address belongs to this function */
	.size fork_trampoline, . - fork_trampoline
