/* For asm_<isa>.S: functions, each with its row in the table that asm.cc walks. */

#if defined(__i386__)
#define WORD .long
#else
#define WORD .quad
#endif

/* `%progbits` everywhere: the one spelling that all assemblers take. */
	.section .data.rel.ro.asm_functions, "aw", %progbits
	.balign 8
	.globl asm_functions
	.type asm_functions, %object
asm_functions:
	.text

.macro FUNCTION name
	.pushsection .rodata.asm_names, "a", %progbits
.Lname_\name:
	.asciz "\name"
	.popsection
	.pushsection .data.rel.ro.asm_functions, "aw", %progbits
	WORD \name, .Lname_\name
	.popsection
	.text
	.balign 16
	.globl \name
	.type \name, %function
\name:
.endm

.macro END_FUNCTION name
	.size \name, . - \name
.endm

.macro END_FUNCTIONS
	.section .data.rel.ro.asm_functions, "aw", %progbits
	WORD 0, 0
	.size asm_functions, . - asm_functions
.endm
