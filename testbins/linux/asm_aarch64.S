/* aarch64: what depends on the pc, and what changes it; and the exclusive loops that a breakpoint breaks. */
#include "asm.h"

.macro FRAME
	stp x29, x30, [sp, #-32]!
	mov x29, sp
.endm

.macro LEAVE
	ldp x29, x30, [sp], #32
	ret
.endm

/* x0 collects one bit per test; `bit` counts them. */
.macro REACHED
	orr x0, x0, #(1 << bit)
.endm

.macro BRANCH operation, operands:vararg
	\operation \operands, 1f
	b 2f
1:	REACHED
2:	.set bit, bit + 1
.endm

/* Every condition, four states of NZCV: each (but al and nv, which always hold) is met at least once and not met at least once. */
FUNCTION asm_b_cond
	FRAME
	mov x0, #0
	.set bit, 0
	.irp flags, 0, 0xf0000000, 0x80000000, 0x20000000
	.irp condition, eq, ne, cs, cc, mi, pl, vs, vc, hi, ls, ge, lt, gt, le, al, nv
	mov x1, #\flags
	msr nzcv, x1
	b.\condition 1f
	b 2f
1:	REACHED
2:	.set bit, bit + 1
	.endr
	.endr
	LEAVE
END_FUNCTION asm_b_cond

/* Zero, not zero, and not zero only in the upper half. */
FUNCTION asm_cbz
	FRAME
	mov x0, #0
	mov x1, #0
	mov x2, #5
	mov x3, #0x500000000
	.set bit, 0
	.irp number, 1, 2, 3
	BRANCH cbz, w\number
	BRANCH cbz, x\number
	BRANCH cbnz, w\number
	BRANCH cbnz, x\number
	.endr
	BRANCH cbz, wzr
	BRANCH cbnz, xzr
	LEAVE
END_FUNCTION asm_cbz

FUNCTION asm_tbz
	FRAME
	mov x0, #0
	mov x1, #1
	movk x1, #0x8000, lsl #16
	movk x1, #0x8000, lsl #48
	.set bit, 0
	.irp tested, 0, 1, 30, 31
	BRANCH tbz, w1, #\tested
	BRANCH tbnz, w1, #\tested
	.endr
	.irp tested, 32, 62, 63
	BRANCH tbz, x1, #\tested
	BRANCH tbnz, x1, #\tested
	.endr
	LEAVE
END_FUNCTION asm_tbz

/* Backwards, as loops have it: 5 * (1 + 2 + ... + 9), by all four families. */
FUNCTION asm_loop
	FRAME
	mov x0, #0
	mov x1, #5
1:	mov x2, #9
2:	add x0, x0, x2
	sub x2, x2, #1
	cbnz x2, 2b
	subs x1, x1, #1
	b.gt 1b
	mov x1, #-3
3:	add x1, x1, #1
	add x0, x0, #1000
	tbnz x1, #63, 3b
	LEAVE
END_FUNCTION asm_loop

	.type asm_add_ten, %function
asm_add_ten:
	add x0, x0, #10
	ret
	.size asm_add_ten, . - asm_add_ten

/* Returns by another register than x30. */
	.type asm_return_by_x5, %function
asm_return_by_x5:
	add x0, x0, #100
	ret x5
	.size asm_return_by_x5, . - asm_return_by_x5

	.type asm_entry_bti, %function
asm_entry_bti:
	bti c
	paciasp
	stp x29, x30, [sp, #-16]!
	mov x29, sp
	add x0, x0, #1000
	ldp x29, x30, [sp], #16
	autiasp
	ret
	.size asm_entry_bti, . - asm_entry_bti

	.type asm_entry_sub, %function
asm_entry_sub:
	sub sp, sp, #64
	str x30, [sp, #8]
	add x0, x0, #8192
	ldr x30, [sp, #8]
	add sp, sp, #64
	ret
	.size asm_entry_sub, . - asm_entry_sub

/* bl, blr, br, ret with and without register: 5 tens, 1 hundred, 3 thousands and 8192 of entries, 1 for the right return address. */
FUNCTION asm_call
	FRAME
	mov x0, #0
	bl asm_add_ten
	adr x1, asm_add_ten
	blr x1
	mov x30, x1
	blr x30
	adr x30, 1f
	b asm_add_ten
	udf #0
1:	adr x30, 2f
	br x1
	udf #0
2:	adr x5, 3f
	b asm_return_by_x5
	udf #0
3:	bl asm_entry_bti
	bl asm_entry_bti
	bl asm_entry_bti
	bl asm_entry_sub
	bl 4f
4:	adr x1, 4b
	cmp x1, x30
	cinc x0, x0, eq
	LEAVE
END_FUNCTION asm_call

/* Addresses against each other: distances do not depend on where the program is. */
FUNCTION asm_adr
	FRAME
1:	adr x1, 1b
	adr x2, 2f
	sub x0, x2, x1
	adrp x3, asm_literals
	add x3, x3, :lo12:asm_literals
	adr x4, asm_literals
	sub x3, x3, x4
	add x0, x0, x3
	/* A page begins with twelve zeros. */
	adrp x5, .
	and x7, x5, #0xfff
	add x0, x0, x7
	adr x8, .
	sub x8, x8, x1
	add x0, x0, x8, lsl #8
2:	adr x9, asm_adr
	sub x9, x2, x9
	add x0, x0, x9, lsl #16
	LEAVE
END_FUNCTION asm_adr

	.balign 16
asm_literals:
	.quad 0x1122334455667788, 0x99aabbccddeeff00
	.single 1.5, 2.5
	.double 20.25
	.word 0x80000001, 0x7fffffff

/* Every kind of literal load; the sum of what was loaded. */
FUNCTION asm_ldr_literal
	FRAME
	ldr x0, asm_literals
	ldr w1, asm_literals+8
	add x0, x0, x1
	ldrsw x1, asm_literals+32
	add x0, x0, x1
	ldrsw x1, asm_literals+36
	add x0, x0, x1
	ldr s0, asm_literals+16
	ldr s1, asm_literals+20
	fadd s0, s0, s1
	fcvtzs x1, s0
	add x0, x0, x1
	ldr d2, asm_literals+24
	fcvtzs x1, d2
	add x0, x0, x1
	ldr q3, asm_literals
	mov x1, v3.d[1]
	eor x0, x0, x1
	mov x1, v3.d[0]
	add x0, x0, x1
	prfm pldl1keep, asm_literals
	prfm pstl2strm, asm_literals
	ldr xzr, asm_literals
	LEAVE
END_FUNCTION asm_ldr_literal

/* An addition of 10 by load and store exclusive, in words, doublewords, pairs, acquiring and releasing; and one that was cleared. */
FUNCTION asm_exclusive
	FRAME
	str xzr, [sp, #16]
	str xzr, [sp, #24]
	add x1, sp, #16
	mov x2, #10
1:	ldxr x3, [x1]
	add x3, x3, #1
	stxr w4, x3, [x1]
	cbnz w4, 1b
	sub x2, x2, #1
	cbnz x2, 1b
2:	ldaxr w3, [x1]
	add w3, w3, #100
	stlxr w4, w3, [x1]
	cbnz w4, 2b
3:	ldxp x3, x5, [x1]
	add x3, x3, #1000
	add x5, x5, #7
	stxp w4, x3, x5, [x1]
	cbnz w4, 3b
4:	ldxrb w3, [x1]
	eor w3, w3, #0xff
	stxrb w4, w3, [x1]
	cbnz w4, 4b
	ldxr x3, [x1]
	clrex
	stxr w4, xzr, [x1]
	ldr x0, [sp, #16]
	ldr x5, [sp, #24]
	add x0, x0, x5, lsl #32
	add x0, x0, x4, lsl #48
	LEAVE
END_FUNCTION asm_exclusive

END_FUNCTIONS
	.section .note.GNU-stack, "", %progbits
