/*
 * The signal trampoline, user text: copied to SHAREDPAGE, entered with sp at a struct sigframe.
 */
#include "asmacros.h"
#include "sys/syscall.h"

	.section .rodata
	.balign	16
	.globl	sigcode, esigcode
sigcode:
	ldr	x16, [sp]
	blr	x16
	add	x0, sp, #SIGFRAME_CONTEXT
	mov	x8, #SYS_sigreturn
	svc	#0
	brk	#1			/* sigreturn refused the frame */
esigcode:
