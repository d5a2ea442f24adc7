/*
 * The signal trampoline, user text: copied to SHAREDPAGE, entered with rsp at a struct sigframe.
 */
#include "asmacros.h"
#include "sys/syscall.h"

	.section .rodata
	.balign	16
	.globl	sigcode, esigcode
sigcode:
	call	*(%rsp)
	leaq	SIGFRAME_CONTEXT(%rsp), %rdi
	movl	$SYS_sigreturn, %eax
	syscall
	int3				/* sigreturn refused the frame */
esigcode:
