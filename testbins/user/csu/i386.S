/* crt1: eax = argc, edx = argv, ecx = envp, ebx = the function that rtld calls at exit; a call leaves the stack as the ABI requires. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	xorl	%ebp, %ebp		/* stack traces end here */
	movl	%ebx, %esi
	call	1f
1:	popl	%ebx
	addl	$_GLOBAL_OFFSET_TABLE_ + (. - 1b), %ebx
	leal	main@GOTOFF(%ebx), %edi
	subl	$12, %esp
	pushl	%edi
	pushl	%esi
	pushl	%ecx
	pushl	%edx
	pushl	%eax
	call	__libc_start1@PLT
	int3
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
