/* What every assembly file here uses. */
#ifndef ASMACROS_H
#define ASMACROS_H

#include "assym.h"

#define ENTRY(name) .text; .balign 16; .globl name; .type name, @function; name:
#define END(name) .size name, . - name
#define LONE_RETURN ret

	/* The stack pointer goes from the frame to its tf_trapno. */
	.macro	RESTORE_REGISTERS
	popl	%fs
	popl	%es
	popl	%ds
	popal
	.endm

#endif
