/* The first instructions: from M mode with paging off to kmain in S mode at high addresses. */
#include "assym.h"
#include "riscvreg.h"

	.section .text.boot, "ax"
	.globl _start
	.type _start, @function
/* a0 = RAM size, a1 = initrd, a2 = its size: kept for kmain throughout. */
_start:
	/* Every trap and interrupt goes to S mode; M mode is not entered again. */
	li	t0, 0xffff
	csrw	medeleg, t0
	li	t0, 0x222
	csrw	mideleg, t0
	la	t0, machine_trap
	csrw	mtvec, t0
	csrw	mcounteren, zero	/* host counters are not deterministic: no program may read them */

	/* Without a PMP entry S mode may touch nothing: one that allows everything. */
	li	t0, -1
	csrw	pmpaddr0, t0
	li	t0, 0x1f		/* NAPOT, read, write, execute */
	csrw	pmpcfg0, t0

	/* The root's entry for KERNBASE: page number at bit 10, and the bit that says it is valid. */
	la	t0, boot_root + 256 * 8
	la	t1, boot_megapages
	srli	t1, t1, 2
	ori	t1, t1, 1
	sd	t1, (t0)

	la	t0, boot_root
	srli	t0, t0, 12
	li	t1, SATP_MODE_SV39 << 60
	or	t0, t0, t1
	csrw	satp, t0
	sfence.vma

	li	t0, MSTATUS_MPP
	csrc	mstatus, t0
	li	t0, MSTATUS_MPP_S
	csrs	mstatus, t0
	la	t0, supervisor_start
	li	t1, KERNBASE
	add	t0, t0, t1
	csrw	mepc, t0
	mret				/* satp takes effect with S mode: straight to the high address */
	.size _start, . - _start

	.balign	4
	.type machine_trap, @function
machine_trap:
	wfi
	j	machine_trap
	.size machine_trap, . - machine_trap

	.type supervisor_start, @function
supervisor_start:
	la	sp, kstack0
	li	t0, KSTACK0_SIZE - TF_SIZE	/* thread0's td_frame lies above, as every thread's does */
	add	sp, sp, t0
	la	tp, pcpu0
	csrw	sscratch, zero		/* we are in the kernel (exception.S) */
	li	s0, 0			/* stack traces end here */
	call	kmain
	.size supervisor_start, . - supervisor_start

	.data
	.balign	4096
boot_root:
	.fill	512, 8, 0
/*
 * The first GiB of memory. Only the megapage of the text is executable, since a store to a page that may hold code costs
 * an emulator much more than another.
 */
boot_megapages:
	.set	physical, 0
	.rept	512
	.if	physical == KERNEL_PHYSICAL
	.quad	(physical >> 2) + 0xef	/* dirty, accessed, global, x, w, r, valid */
	.else
	.quad	(physical >> 2) + 0xe7	/* the same without x */
	.endif
	.set	physical, physical + 0x200000
	.endr
