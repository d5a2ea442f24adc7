/*
 * The signal trampoline, user text: copied to SHAREDPAGE, entered with esp at a struct sigframe, the handler's
 * arguments in eax, edx and ecx.
 */
#include "asmacros.h"
#include "sys/syscall.h"

	.section .rodata
	.balign	16
	.globl	sigcode, esigcode
sigcode:
	movl	(%esp), %ebx
	movl	%ecx, %esi
	pushl	$0			/* the stack of a call is aligned */
	pushl	%ecx
	pushl	%edx
	pushl	%eax
	call	*%ebx
	pushl	%esi
	pushl	$0			/* the place of a stub's return address */
	movl	$SYS_sigreturn, %eax
	int	$0x80
	int3				/* sigreturn refused the frame */
esigcode:
