/*
 * Exceptions: build the trap frame, call C, restore.
 *
 * With one CPU and interrupts off in the kernel, TPIDR_EL1 has no other use than to hold x0 for a moment, and sp_el0
 * none but to hold a bad sp: the user's is in its frame.
 */
#include "asmacros.h"

	.text

	.macro	SAVE_REGISTERS el
	.if	\el == 1
	sub	sp, sp, #(TF_SIZE + TF_GAP)
	.else
	sub	sp, sp, #TF_SIZE
	.endif
	stp	x0, x1, [sp, #(TF_X + 0 * 8)]
	stp	x2, x3, [sp, #(TF_X + 2 * 8)]
	stp	x4, x5, [sp, #(TF_X + 4 * 8)]
	stp	x6, x7, [sp, #(TF_X + 6 * 8)]
	stp	x8, x9, [sp, #(TF_X + 8 * 8)]
	stp	x10, x11, [sp, #(TF_X + 10 * 8)]
	stp	x12, x13, [sp, #(TF_X + 12 * 8)]
	stp	x14, x15, [sp, #(TF_X + 14 * 8)]
	stp	x16, x17, [sp, #(TF_X + 16 * 8)]
	stp	x18, x19, [sp, #(TF_X + 18 * 8)]
	stp	x20, x21, [sp, #(TF_X + 20 * 8)]
	stp	x22, x23, [sp, #(TF_X + 22 * 8)]
	stp	x24, x25, [sp, #(TF_X + 24 * 8)]
	stp	x26, x27, [sp, #(TF_X + 26 * 8)]
	stp	x28, x29, [sp, #(TF_X + 28 * 8)]
	.if	\el == 1
	add	x8, sp, #(TF_SIZE + TF_GAP)
	.else
	mrs	x8, sp_el0
	mov	x29, xzr		/* the walk of kernel frames ends here */
	.endif
	stp	x8, x30, [sp, #TF_SP]
	mrs	x8, elr_el1
	mrs	x9, spsr_el1
	stp	x8, x9, [sp, #TF_ELR]
	mrs	x8, esr_el1
	mrs	x9, far_el1
	stp	x8, x9, [sp, #TF_ESR]
	mov	x0, sp
	.endm

/*
 * Everything in the frame takes effect, the callee-saved registers included: a displaced instruction, a new image or
 * a signal handler may have changed any of them.
 */
	.macro	RESTORE_REGISTERS el
	ldp	x8, x9, [sp, #TF_ELR]
	msr	elr_el1, x8
	msr	spsr_el1, x9
	ldr	x1, [sp, #TF_SP]
	.if	\el == 1
	ldr	x0, [sp, #TF_X]
	msr	tpidr_el1, x0
	mov	x0, x1
	ldr	x1, [sp, #(TF_X + 1 * 8)]
	.else
	msr	sp_el0, x1
	ldp	x0, x1, [sp, #(TF_X + 0 * 8)]
	.endif
	ldp	x2, x3, [sp, #(TF_X + 2 * 8)]
	ldp	x4, x5, [sp, #(TF_X + 4 * 8)]
	ldp	x6, x7, [sp, #(TF_X + 6 * 8)]
	ldp	x8, x9, [sp, #(TF_X + 8 * 8)]
	ldp	x10, x11, [sp, #(TF_X + 10 * 8)]
	ldp	x12, x13, [sp, #(TF_X + 12 * 8)]
	ldp	x14, x15, [sp, #(TF_X + 14 * 8)]
	ldp	x16, x17, [sp, #(TF_X + 16 * 8)]
	ldp	x18, x19, [sp, #(TF_X + 18 * 8)]
	ldp	x20, x21, [sp, #(TF_X + 20 * 8)]
	ldp	x22, x23, [sp, #(TF_X + 22 * 8)]
	ldp	x24, x25, [sp, #(TF_X + 24 * 8)]
	ldp	x26, x27, [sp, #(TF_X + 26 * 8)]
	ldp	x28, x29, [sp, #(TF_X + 28 * 8)]
	ldr	x30, [sp, #TF_LR]
	.if	\el == 1
	mov	sp, x0			/* the frame may be under water from here on */
	mrs	x0, tpidr_el1
	.else
	add	sp, sp, #TF_SIZE
	.endif
	.endm

/*
 * Where the vectors lead. These are not functions and are not typed as such: FBT, which takes the sub that opens a frame
 * for an entry, must not put a breakpoint where elr_el1 and spsr_el1 have not been saved yet. (FreeBSD has FBT know the
 * name handle_el1h_sync instead: sys/cddl/dev/fbt/aarch64/fbt_isa.c.)
 */
	.macro	HANDLER name
	.balign	16
\name:
	.endm

/*
 * An exception from EL1 uses the stack it finds. If that stack is full the first store of the frame would be the
 * next exception, and so on forever: check before storing. The flags are free, SPSR_EL1 has them.
 */
	.macro	CHECK_STACK
	msr	tpidr_el1, x0
	ldr	x0, =pcpu0
	ldr	x0, [x0, #PC_KSTACK_LIMIT]
	cmp	sp, x0
	b.lo	handle_stack_overflow
	mrs	x0, tpidr_el1
	.endm

	HANDLER	handle_stack_overflow
	mov	x0, sp
	msr	sp_el0, x0
	ldr	x0, =emergency_stack + EMERGENCY_STACK_SIZE
	mov	sp, x0
	mrs	x0, tpidr_el1
	SAVE_REGISTERS 0
	bl	trap_stack_overflow

	HANDLER	handle_el1h_sync
	SAVE_REGISTERS 1
	ldr	w1, [sp, #TF_ESR]
	ldr	w2, =ESR_BRK_DTRACE
	cmp	w1, w2
	b.eq	1f
	bl	trap_el1h
	RESTORE_REGISTERS 1
	eret
	/* A breakpoint of DTrace's, which returns on a path of its own. */
1:	bl	dtrace_invop_start
	RESTORE_REGISTERS 1
	.globl	dtrace_invop_return
dtrace_invop_return:
	eret

	HANDLER	handle_el1h_irq
	SAVE_REGISTERS 1
	bl	hardclock
	RESTORE_REGISTERS 1
	eret

	HANDLER	handle_el0_sync
	SAVE_REGISTERS 0
	bl	trap_el0
	b	exception_return_el0

	HANDLER	handle_el0_irq
	SAVE_REGISTERS 0
	bl	hardclock
	/* FALLTHROUGH */

	HANDLER	exception_return_el0
	RESTORE_REGISTERS 0
	eret

	HANDLER	handle_unexpected
	SAVE_REGISTERS 1
	bl	trap_unexpected

/*
 * cpu_user_enter(frame): the kernel stack above the frame is given up.
 */
ENTRY(cpu_user_enter)
	mov	sp, x0
	b	exception_return_el0
END(cpu_user_enter)

	.macro	VECTOR handler
	.balign	128
	b	\handler
	.endm

	.macro	VECTOR_EL1 handler
	.balign	128
	CHECK_STACK
	b	\handler
	.endm

	.balign	2048
	.globl	exception_vectors
exception_vectors:
	VECTOR	handle_unexpected	/* EL1 on sp_el0, never used: sync, IRQ, FIQ, SError */
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected
	VECTOR_EL1 handle_el1h_sync
	VECTOR_EL1 handle_el1h_irq
	VECTOR_EL1 handle_unexpected
	VECTOR_EL1 handle_unexpected
	VECTOR	handle_el0_sync
	VECTOR	handle_el0_irq
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected	/* 32-bit EL0, never entered */
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected
	VECTOR	handle_unexpected
