/* Into the run-time linker: from the kernel, and from a function's first call. */
	.text
	.globl	rtld_start
	.type	rtld_start, @function
/* sp = argc, argv[], envp[] and the auxiliary vector, as the kernel left them for the program too. */
rtld_start:
	mov	x29, #0
	mov	x30, #0
	mov	x19, sp
	sub	sp, sp, #16
	mov	x0, x19
	mov	x1, sp
	bl	_rtld
	mov	x8, x0
	ldr	x3, [sp]		/* what is to be called at exit */
	mov	sp, x19
	ldr	x0, [x19]
	add	x1, x19, #8
	add	x2, x1, x0, lsl #3
	add	x2, x2, #8
	mov	x30, #0
	br	x8
	.size	rtld_start, . - rtld_start

	.globl	_rtld_bind_start
	.type	_rtld_bind_start, @function
/* The PLT has pushed the address of the function's GOT entry, and x30; x16 = &GOT[2]. */
_rtld_bind_start:
	stp	x0, x1, [sp, #-80]!
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x29, [sp, #64]
	ldr	x0, [x16, #-8]
	ldr	x1, [sp, #80]
	sub	x1, x1, x16		/* GOT[3] is the first of a function */
	sub	x1, x1, #8
	lsr	x1, x1, #3
	bl	_rtld_bind
	mov	x17, x0
	ldp	x2, x3, [sp, #16]
	ldp	x4, x5, [sp, #32]
	ldp	x6, x7, [sp, #48]
	ldp	x8, x29, [sp, #64]
	ldp	x0, x1, [sp], #80
	ldp	x16, x30, [sp], #16
	br	x17
	.size	_rtld_bind_start, . - _rtld_bind_start

	.section .note.GNU-stack, "", @progbits
