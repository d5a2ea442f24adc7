/* Writes the registers as they are when a program starts: x0-x30, sp, the flags, fpcr, fpsr, tpidr_el0, then v0-v31. */
	.globl _start
	.type _start, %function
_start:
	/* The address goes into lr, once lr is saved below sp. */
	str x30, [sp, #-16]
	adrp x30, general
	add x30, x30, :lo12:general
	stp x0, x1, [x30]
	stp x2, x3, [x30, #16]
	stp x4, x5, [x30, #32]
	stp x6, x7, [x30, #48]
	stp x8, x9, [x30, #64]
	stp x10, x11, [x30, #80]
	stp x12, x13, [x30, #96]
	stp x14, x15, [x30, #112]
	stp x16, x17, [x30, #128]
	stp x18, x19, [x30, #144]
	stp x20, x21, [x30, #160]
	stp x22, x23, [x30, #176]
	stp x24, x25, [x30, #192]
	stp x26, x27, [x30, #208]
	stp x28, x29, [x30, #224]
	ldr x0, [sp, #-16]
	mov x1, sp
	stp x0, x1, [x30, #240]
	mrs x0, nzcv
	mrs x1, fpcr
	stp x0, x1, [x30, #256]
	mrs x0, fpsr
	mrs x1, tpidr_el0
	stp x0, x1, [x30, #272]
	add x2, x30, #288
	.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	str q\n, [x2], #16
	.endr
	mov x8, #64
	mov x0, #1
	mov x1, x30
	mov x2, #end - general
	svc #0
	mov x8, #93
	mov x0, #0
	svc #0
	.size _start, . - _start

	.bss
	.balign 64
general:
	.skip 36 * 8
vectors:
	.skip 32 * 16
end:
