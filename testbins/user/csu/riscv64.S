/* crt1: a0 = argc, a1 = argv, a2 = envp, a3 = the function that rtld calls at exit. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	li	s0, 0			/* stack traces end here */
	lla	a4, main
	call	__libc_start1
	ebreak
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
