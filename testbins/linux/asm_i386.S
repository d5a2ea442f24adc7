/* i386: what depends on eip, and what changes it; and the forms that compilers begin functions with. */
#include "asm.h"

	.set CARRY_ETC, 0x8d7		/* CF PF AF ZF SF OF, and bit 1 that is always set */
	.set SIGN, 0x82

.macro FRAME
	push %ebp
	mov %esp, %ebp
.endm

/* eax collects one bit per test, folded: each turn to the left by five, so that 48 of them leave their mark. */
.macro REACHED
	add $(bit * 2 + 1), %eax
	rol $5, %eax
.endm

.macro JCC prefix, cc, flags
	push $\flags
	popf
	\prefix j\cc 1f
	jmp 2f
1:	REACHED
2:	.set bit, bit + 1
.endm

/* Every condition, three states of the flags: each is met at least once and not met at least once. */
.macro EVERY_JCC prefix
	.set bit, 0
	.irp flags, 2, CARRY_ETC, SIGN
	.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	JCC \prefix, \cc, \flags
	.endr
	.endr
.endm

FUNCTION asm_jcc_rel8
	FRAME
	xor %eax, %eax
	EVERY_JCC {disp8}
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_jcc_rel8

FUNCTION asm_jcc_rel32
	FRAME
	xor %eax, %eax
	EVERY_JCC {disp32}
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_jcc_rel32

/* Backwards, as loops have it: 5 * (1 + 2 + ... + 9). */
FUNCTION asm_jcc_backwards
	FRAME
	xor %eax, %eax
	mov $5, %edx
1:	mov $9, %ecx
2:	add %ecx, %eax
	dec %ecx
	jnz 2b
	dec %edx
	{disp32} jg 1b
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_jcc_backwards

/* 10 rounds of loop; loope until the flag changes at 4; loopne until it is set at 3; in bytes 0, 1 and 2. Then jecxz and jcxz: bits above. */
FUNCTION asm_loop
	FRAME
	push %ebx
	xor %eax, %eax
	mov $10, %ecx
1:	inc %eax
	loop 1b
	mov $10, %ecx
2:	add $0x100, %eax
	cmp $5, %ecx
	setge %dl
	cmp $1, %dl
	loope 2b
	mov $10, %ecx
3:	add $0x10000, %eax
	cmp $8, %ecx
	loopne 3b
	mov $4, %ecx
4:	add $0x100, %eax
	cmp %eax, %eax
	loope 4b
	mov $4, %ecx
5:	add $0x10000, %eax
	cmp $-1, %esp
	loopne 5b
	.set mark, 0x1000000
	.irp count, 0, 1
	mov $\count, %ecx
	jecxz 6f
	jmp 7f
6:	add $mark, %eax
7:	.set mark, mark * 2
	mov $0x10000 + \count, %ecx
	jcxz 8f
	jmp 9f
8:	add $mark, %eax
9:	.set mark, mark * 2
	.endr
	pop %ebx
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_loop

/* Jumps of every form; ud2 where none of them should fall through to. */
FUNCTION asm_jmp
	FRAME
	push %ebx
	xor %eax, %eax
	.set bit, 0
	{disp8} jmp 1f
	ud2
1:	REACHED
	.set bit, bit + 1
	{disp32} jmp 1f
	ud2
1:	REACHED
	.set bit, bit + 1
	call 2f
2:	pop %ebx			/* where this is: position independent, as libraries are */
	lea 1f-2b(%ebx), %ecx
	jmp *%ecx
	ud2
1:	REACHED
	.set bit, bit + 1
	/* Through memory: base and displacement; base, index and scale. */
	lea 1f-2b(%ebx), %ecx
	push %ecx
	jmp *(%esp)
	ud2
1:	REACHED
	.set bit, bit + 1
	lea 1f-2b(%ebx), %ecx
	mov %ecx, (%esp)
	mov $2, %edx
	jmp *-8(%esp,%edx,4)
	ud2
1:	REACHED
	.set bit, bit + 1
	pop %ecx
	/* A return to wherever: what retpolines do. */
	lea 1f-2b(%ebx), %ecx
	push %ecx
	ret
	ud2
1:	REACHED
	.set bit, bit + 1
	pop %ebx
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_jmp

	.type asm_add_ten, @function
asm_add_ten:
	add $10, %eax
	ret
	.size asm_add_ten, . - asm_add_ten

/* Takes its two words from the stack with it. */
	.type asm_add_pushed, @function
asm_add_pushed:
	add 4(%esp), %eax
	add 8(%esp), %eax
	ret $8
	.size asm_add_pushed, . - asm_add_pushed

/* The same in the form with a prefix that compilers use for branch predictors of old. */
	.type asm_rep_ret, @function
asm_rep_ret:
	add $1000, %eax
	rep ret
	.size asm_rep_ret, . - asm_rep_ret

/* 4 times 10, twice the pushed words, 1000, and the address after a call in place, 1. */
FUNCTION asm_call
	FRAME
	push %ebx
	push %esi
	xor %eax, %eax
	call 1f
1:	pop %ebx
	call asm_add_ten
	lea asm_add_ten-1b(%ebx), %ecx
	call *%ecx
	push %ecx
	call *(%esp)
	mov $3, %edx
	call *-12(%esp,%edx,4)
	pop %ecx
	mov %esp, %esi
	push $100
	push $200
	call asm_add_pushed
	push $-300
	push $0x12345
	lea asm_add_pushed-1b(%ebx), %ecx
	call *%ecx
	/* 0 if ret took what was pushed. */
	sub %esp, %esi
	add %esi, %eax
	call asm_rep_ret
	/* A call to the next instruction: the way to one's own address. */
	call 2f
2:	pop %ecx
	lea 2b-1b(%ebx), %edx
	cmp %ecx, %edx
	sete %cl
	movzbl %cl, %ecx
	add %ecx, %eax
	pop %esi
	pop %ebx
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_call

/* What pushes and pops, frames by enter and leave, all registers at once. */
FUNCTION asm_push_pop
	FRAME
	push %ebx
	push %esi
	mov %esp, %ebx
	xor %eax, %eax
.macro WEIGH register
	lea (%eax,%eax,2), %eax
	add \register, %eax
.endm
	push $7
	pop %ecx
	WEIGH %ecx
	push $0x12345678
	pop %esi
	WEIGH %esi
	pushw $0x1234
	popw %cx
	movzwl %cx, %ecx
	WEIGH %ecx
	push %esp
	pop %ecx
	sub %ebx, %ecx
	WEIGH %ecx
	/* An address by esp: of a push as it was before, of a pop as it is after. */
	push $5
	push $0
	push 4(%esp)
	pop (%esp)
	pop %ecx
	pop %edx
	WEIGH %ecx
	stc
	pushf
	clc
	popf
	sbb %ecx, %ecx
	WEIGH %ecx
	enter $32, $0
	movl $9, -4(%ebp)
	mov %ebp, %ecx
	sub %esp, %ecx
	add -4(%ebp), %ecx
	leave
	WEIGH %ecx
	mov $0x21, %ecx
	pushal
	xor %ecx, %ecx
	popal
	WEIGH %ecx
	mov %esp, %ecx
	sub %ebx, %ecx
	WEIGH %ecx
	pop %esi
	pop %ebx
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_push_pop

/* What only 32-bit code has: decimal arithmetic, and a single byte for inc and dec. */
FUNCTION asm_decimal
	FRAME
	push %ebx
	mov $0x4938, %eax
	add $0x27, %al
	daa
	mov %eax, %ebx
	mov $0x0305, %ax
	aad
	lea (%eax,%ebx,4), %ebx
	mov $0x4f, %al
	aam
	inc %eax
	dec %ebx
	lea (%eax,%ebx,2), %eax
	pop %ebx
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_decimal

/* Entries without a frame, with a nop, with endbr32: each adds 1. */
	.type asm_entry_nop, @function
asm_entry_nop:
	nop
	inc %eax
	ret
	.size asm_entry_nop, . - asm_entry_nop
	.type asm_entry_endbr, @function
asm_entry_endbr:
	endbr32
	inc %eax
	ret
	.size asm_entry_endbr, . - asm_entry_endbr
	.type asm_entry_sub, @function
asm_entry_sub:
	sub $12, %esp
	inc %eax
	add $12, %esp
	ret
	.size asm_entry_sub, . - asm_entry_sub

FUNCTION asm_entries
	FRAME
	xor %eax, %eax
	call asm_entry_nop
	call asm_entry_endbr
	call asm_entry_sub
	xor %edx, %edx
	pop %ebp
	ret
END_FUNCTION asm_entries

END_FUNCTIONS
	.section .note.GNU-stack, "", @progbits
