/* Into the run-time linker: from the kernel, and from a function's first call. */
	.text
	.globl	rtld_start
	.type	rtld_start, @function
/* sp = argc, argv[], envp[] and the auxiliary vector, as the kernel left them for the program too. */
rtld_start:
	li	s0, 0
	mv	s1, sp
	addi	sp, sp, -16
	mv	a0, s1
	mv	a1, sp
	call	_rtld
	mv	t0, a0
	ld	a3, 0(sp)		/* what is to be called at exit */
	mv	sp, s1
	ld	a0, 0(s1)
	addi	a1, s1, 8
	slli	a2, a0, 3
	add	a2, a2, a1
	addi	a2, a2, 8
	li	ra, 0
	jr	t0
	.size	rtld_start, . - rtld_start

	.globl	_rtld_bind_start
	.type	_rtld_bind_start, @function
/* The PLT has left what is in GOT[1], the object, in t0, and in t1 the relocation's number times 8. */
_rtld_bind_start:
	addi	sp, sp, -80
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	sd	a\number, 8 * \number(sp)
	.endr
	sd	ra, 64(sp)
	mv	a0, t0
	srli	a1, t1, 3
	call	_rtld_bind
	mv	t3, a0
	.irp	number, 0, 1, 2, 3, 4, 5, 6, 7
	ld	a\number, 8 * \number(sp)
	.endr
	ld	ra, 64(sp)
	addi	sp, sp, 80
	jr	t3
	.size	_rtld_bind_start, . - _rtld_bind_start

	.section .note.GNU-stack, "", @progbits
