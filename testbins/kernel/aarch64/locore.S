/*
 * From the loader's world, EL1h at physical addresses with the MMU off, to kmain(ram_size, initrd, initrd_size) at
 * kernel addresses.
 */
#include "asmacros.h"

/*
 * x0-x2 are kmain's arguments and stay untouched.
 */
ENTRY(_start)
	msr	daifset, #DAIF_ALL
	adrp	x8, boot_l1
	msr	ttbr0_el1, x8		/* this code, until it has jumped */
	msr	ttbr1_el1, x8		/* the kernel addresses of the same memory */
	ldr	x8, =MAIR_NORMAL
	msr	mair_el1, x8
	ldr	x8, =TCR_VALUE
	msr	tcr_el1, x8
	tlbi	vmalle1
	dsb	nsh
	isb
	mrs	x8, sctlr_el1
	ldr	x9, =SCTLR_SET
	orr	x8, x8, x9
	msr	sctlr_el1, x8
	isb
	ldr	x8, =1f
	br	x8
1:
	ldr	x8, =kstack0 + KSTACK0_SIZE
	mov	sp, x8
	mov	x29, xzr
	mov	x30, xzr
	bl	kmain
	udf	#0			/* it does not return, and a return address must lie in its function */
END(_start)

/*
 * The boot map. One table does for both halves: the first GiB of either is the first GiB of memory. Only the block of the
 * text is executable, since a store to a page that may hold code costs an emulator much more than another.
 */
	.data
	.balign	PAGE_SIZE
boot_l1:
	.quad	boot_l2 - KERNBASE + ATTR_TABLE
	.fill	511, 8, 0
boot_l2:
	.set	physical, 0
	.rept	512
	.if	physical == KERNEL_PHYSICAL
	.quad	physical + (ATTR_BLOCK | ATTR_AF | ATTR_SH_INNER | ATTR_UXN)
	.else
	.quad	physical + (ATTR_BLOCK | ATTR_AF | ATTR_SH_INNER | ATTR_UXN | ATTR_PXN)
	.endif
	.set	physical, physical + LARGE_PAGE_SIZE
	.endr
