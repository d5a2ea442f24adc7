/* crt1: x0 = argc, x1 = argv, x2 = envp, x3 = the function that rtld calls at exit. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	mov	x29, #0			/* stack traces end here */
	mov	x30, #0
	adrp	x4, main
	add	x4, x4, #:lo12:main
	bl	__libc_start1
	brk	#1
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
