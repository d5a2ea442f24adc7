/*
 * Traps (FreeBSD sys/riscv/riscv/exception.S).
 * sscratch is 0 in the kernel and &pcpu0 in user mode; tp is &pcpu0 in the kernel.
 */
#include "assym.h"
#include "riscvreg.h"

/* Saves all but sp and tp in the frame at sp; t0 is free afterwards. */
.macro save_registers
	sd	ra, TF_RA(sp)
	sd	gp, TF_GP(sp)
	.irp	n, 0, 1, 2, 3, 4, 5, 6
	sd	t\n, (TF_T + 8 * \n)(sp)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	sd	s\n, (TF_S + 8 * \n)(sp)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	sd	a\n, (TF_A + 8 * \n)(sp)
	.endr
	csrr	t0, sepc
	sd	t0, TF_SEPC(sp)
	csrr	t0, sstatus
	sd	t0, TF_SSTATUS(sp)
	csrr	t0, stval
	sd	t0, TF_STVAL(sp)
	csrr	t0, scause
	sd	t0, TF_SCAUSE(sp)
.endm

/* The reverse; sp comes last, so nothing of the frame is read afterwards. */
.macro restore_registers
	ld	t0, TF_SEPC(sp)
	csrw	sepc, t0
	ld	t0, TF_SSTATUS(sp)
	csrw	sstatus, t0
	ld	ra, TF_RA(sp)
	ld	gp, TF_GP(sp)
	.irp	n, 0, 1, 2, 3, 4, 5, 6
	ld	t\n, (TF_T + 8 * \n)(sp)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	ld	s\n, (TF_S + 8 * \n)(sp)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	ld	a\n, (TF_A + 8 * \n)(sp)
	.endr
	ld	sp, TF_SP(sp)
.endm

	.text
	.balign	4
	.globl	cpu_exception_handler
	.type	cpu_exception_handler, @function
cpu_exception_handler:
	csrrw	tp, sscratch, tp
	beqz	tp, 1f

	/* From user mode. */
	sd	sp, PC_SCRATCH(tp)
	ld	sp, PC_CURTHREAD(tp)
	ld	sp, TD_FRAME(sp)
	save_registers
	ld	t0, PC_SCRATCH(tp)
	sd	t0, TF_SP(sp)
	csrrw	t0, sscratch, zero
	sd	t0, TF_TP(sp)
	li	s0, 0			/* the kernel's stack traces end at the trap */
	mv	a0, sp
	call	do_trap_user
	mv	a0, sp
	j	cpu_user_enter

	/* From the kernel: tp back, sscratch 0 again. */
1:	csrrw	tp, sscratch, tp
	sd	t0, PC_SCRATCH(tp)
	ld	t0, PC_CURTHREAD(tp)
	ld	t0, TD_KSTACK(t0)
	addi	t0, t0, TF_SIZE
	bltu	sp, t0, stack_overflow	/* a frame saved there would fault, and so on forever */
	ld	t0, PC_SCRATCH(tp)
	addi	sp, sp, -TF_SIZE
	save_registers
	sd	tp, TF_TP(sp)
	addi	t0, sp, TF_SIZE
	sd	t0, TF_SP(sp)
	mv	a0, sp
	call	do_trap_supervisor
	restore_registers
	.globl	dtrace_invop_return
dtrace_invop_return:
	sret
	.size cpu_exception_handler, . - cpu_exception_handler

	.type	stack_overflow, @function
stack_overflow:
	sd	sp, (PC_SCRATCH + 8)(tp)
	la	sp, emergency_stack_top - TF_SIZE
	ld	t0, PC_SCRATCH(tp)
	save_registers
	sd	tp, TF_TP(sp)
	ld	t0, (PC_SCRATCH + 8)(tp)
	sd	t0, TF_SP(sp)
	li	s0, 0
	mv	a0, sp
	call	kernel_stack_overflow
	.size stack_overflow, . - stack_overflow

	.globl	cpu_user_enter
	.type	cpu_user_enter, @function
cpu_user_enter:
	mv	sp, a0
	csrw	sscratch, tp
	ld	tp, TF_TP(sp)
	restore_registers
	sret
	.size cpu_user_enter, . - cpu_user_enter

	.bss
	.balign	16
	.skip	4096
emergency_stack_top:
