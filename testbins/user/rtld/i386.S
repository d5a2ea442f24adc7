/* Into the run-time linker: from the kernel, and from a function's first call. */
	.text
	.globl	rtld_start
	.type	rtld_start, @function
/* esp = argc, argv[], envp[] and the auxiliary vector, as the kernel left them for the program too. */
rtld_start:
	xorl	%ebp, %ebp
	movl	%esp, %esi
	subl	$4, %esp
	movl	%esp, %eax
	pushl	%eax
	pushl	%esi
	call	_rtld
	movl	8(%esp), %ebx		/* what is to be called at exit */
	movl	%esi, %esp
	movl	%eax, %edi
	movl	(%esi), %eax
	leal	4(%esi), %edx
	leal	8(%esi,%eax,4), %ecx
	jmp	*%edi
	.size	rtld_start, . - rtld_start

	.globl	_rtld_bind_start
	.type	_rtld_bind_start, @function
/* The PLT has pushed the relocation's offset among its kind, then what is in GOT[1]: the object. A relocation is of 8 bytes. */
_rtld_bind_start:
	.irp	register, eax, ecx, edx
	pushl	%\register
	.endr
	movl	16(%esp), %eax
	shrl	$3, %eax
	pushl	%eax
	pushl	16(%esp)
	call	_rtld_bind
	addl	$8, %esp
	movl	%eax, 16(%esp)
	.irp	register, edx, ecx, eax
	popl	%\register
	.endr
	addl	$4, %esp
	ret				/* to the function, whose caller's address is on top now */
	.size	_rtld_bind_start, . - _rtld_bind_start

	.section .note.GNU-stack, "", @progbits
