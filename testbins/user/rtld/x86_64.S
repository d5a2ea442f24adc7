/* Into the run-time linker: from the kernel, and from a function's first call. */
	.text
	.globl	rtld_start
	.type	rtld_start, @function
/* rsp = argc, argv[], envp[] and the auxiliary vector, as the kernel left them for the program too. */
rtld_start:
	xorl	%ebp, %ebp
	movq	%rsp, %r12
	subq	$16, %rsp
	movq	%r12, %rdi
	movq	%rsp, %rsi
	call	_rtld
	movq	(%rsp), %rcx		/* what is to be called at exit */
	movq	%r12, %rsp
	movq	(%r12), %rdi
	leaq	8(%r12), %rsi
	leaq	16(%r12,%rdi,8), %rdx
	jmp	*%rax
	.size	rtld_start, . - rtld_start

	.globl	_rtld_bind_start
	.type	_rtld_bind_start, @function
/* The PLT has pushed the number of the relocation, then what is in GOT[1]: the object. */
_rtld_bind_start:
	.irp	register, rax, rdi, rsi, rdx, rcx, r8, r9, r10, r11
	pushq	%\register
	.endr
	movq	72(%rsp), %rdi
	movq	80(%rsp), %rsi
	call	_rtld_bind
	movq	%rax, 80(%rsp)
	.irp	register, r11, r10, r9, r8, rcx, rdx, rsi, rdi, rax
	popq	%\register
	.endr
	addq	$8, %rsp
	ret				/* to the function, whose caller's address is on top now */
	.size	_rtld_bind_start, . - _rtld_bind_start

	.section .note.GNU-stack, "", @progbits
