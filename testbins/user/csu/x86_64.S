/* crt1: rdi = argc, rsi = argv, rdx = envp, rcx = the function that rtld calls at exit; a call leaves the stack as the ABI requires. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	xorl	%ebp, %ebp		/* stack traces end here */
	leaq	main(%rip), %r8
	call	__libc_start1@PLT
	int3
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
