/* riscv64: what depends on the pc, and what changes it, in 4 and in 2 bytes; and the reservations that a breakpoint breaks. */
#include "asm.h"

	.option norelax
	.option norvc

.macro FRAME
	addi sp, sp, -32
	sd ra, 24(sp)
	sd s0, 16(sp)
	addi s0, sp, 32
.endm

.macro LEAVE
	ld ra, 24(sp)
	ld s0, 16(sp)
	addi sp, sp, 32
	ret
.endm

/* a0 collects one bit per test, t6 holds the bit of the next. */
.macro BRANCH operation, operands:vararg
	\operation \operands, 1f
	j 2f
1:	or a0, a0, t6
2:	slli t6, t6, 1
.endm

/* All six on five pairs: equal, less, greater, and the two where signed and unsigned disagree. */
FUNCTION asm_branch
	FRAME
	li a0, 0
	li t6, 1
.macro PAIR left, right
	li t0, \left
	li t1, \right
	.irp operation, beq, bne, blt, bge, bltu, bgeu
	BRANCH \operation, t0, t1
	.endr
.endm
	PAIR 3, 3
	PAIR 1, 2
	PAIR 2, 1
	PAIR -1, 1
	PAIR 1, -1
	BRANCH beq, zero, t0
	BRANCH bne, t0, zero
	BRANCH bge, zero, t1
	BRANCH blt, t1, zero
	LEAVE
END_FUNCTION asm_branch

/* Backwards, as loops have it: 5 * (1 + 2 + ... + 9). */
FUNCTION asm_loop
	FRAME
	li a0, 0
	li t0, 5
1:	li t1, 9
2:	add a0, a0, t1
	addi t1, t1, -1
	bnez t1, 2b
	addi t0, t0, -1
	bgtz t0, 1b
	LEAVE
END_FUNCTION asm_loop

	.type asm_add_ten, %function
asm_add_ten:
	addi a0, a0, 10
	ret
	.size asm_add_ten, . - asm_add_ten

/* Returns by t0, the other link register. */
	.type asm_return_by_t0, %function
asm_return_by_t0:
	addi a0, a0, 100
	jr t0
	.size asm_return_by_t0, . - asm_return_by_t0

/* jal and jalr with every kind of link, and offsets: 7 tens, 2 hundreds, 1 for the right return address. */
FUNCTION asm_call
	FRAME
	li a0, 0
	jal ra, asm_add_ten
	jal t0, asm_return_by_t0
	lla t1, asm_add_ten
	jalr ra, 0(t1)
	addi t2, t1, -8
	jalr ra, 8(t2)
	addi t2, t1, 16
	jalr ra, -16(t2)
	/* The link register is the base as well. */
	mv ra, t1
	jalr ra, 0(ra)
	lla t1, asm_return_by_t0
	jalr t0, 0(t1)
	lla ra, 1f
	tail asm_add_ten
	unimp
1:	lla ra, 1f
	j asm_add_ten
	unimp
1:	lla t1, 1f
	jalr zero, 0(t1)
	unimp
1:	jal ra, 1f
1:	lla t1, 1b
	bne t1, ra, 1f
	addi a0, a0, 1
1:	LEAVE
END_FUNCTION asm_call

/* Addresses against each other: distances do not depend on where the program is. */
FUNCTION asm_auipc
	FRAME
1:	auipc t0, 0
2:	auipc t1, 0
	sub a0, t1, t0
	auipc t2, 1
	sub t2, t2, t0
	slli t2, t2, 8
	add a0, a0, t2
	auipc t3, 0xfffff
	sub t3, t0, t3
	slli t3, t3, 24
	add a0, a0, t3
	lla t4, asm_literals
	ld t5, 0(t4)
	add a0, a0, t5
	lw t5, asm_literals
	xor a0, a0, t5
	/* The target is the base too. */
	auipc t0, 0
	addi t0, t0, 4
	lla t1, asm_auipc
	sub t0, t0, t1
	slli t0, t0, 40
	add a0, a0, t0
	LEAVE
END_FUNCTION asm_auipc

	.pushsection .rodata.asm_literals, "a", %progbits
	.balign 8
asm_literals:
	.dword 0x1122334455667788
	.popsection

	.option rvc
	.type asm_add_ten_compressed, %function
asm_add_ten_compressed:
	c.addi a0, 10
	c.jr ra
	.size asm_add_ten_compressed, . - asm_add_ten_compressed

	.type asm_entry_compressed, %function
asm_entry_compressed:
	c.addi sp, -32
	c.sdsp ra, 24(sp)
	c.sdsp s0, 16(sp)
	c.addi4spn s0, sp, 32
	addi a0, a0, 1000
	c.ldsp ra, 24(sp)
	c.ldsp s0, 16(sp)
	c.addi16sp sp, 32
	c.jr ra
	.size asm_entry_compressed, . - asm_entry_compressed

/* In 2 bytes: 3 tens, 2 thousands, and bits 16 up for c.j, c.jr, c.beqz and c.bnez. */
FUNCTION asm_compressed
	c.addi16sp sp, -32
	c.sdsp ra, 24(sp)
	c.li a0, 0
	lla t1, asm_add_ten_compressed
	c.jalr t1
	c.mv ra, t1
	c.jalr ra
	jal asm_add_ten_compressed
	jal asm_entry_compressed
	lla t1, asm_entry_compressed
	c.jalr t1
	c.lui a2, 16
	c.j 1f
	c.ebreak
1:	c.or a0, a2
	c.slli a2, 1
	lla t1, 1f
	c.jr t1
	c.ebreak
1:	c.or a0, a2
	c.slli a2, 1
	.irp value, 0, 1
	.irp operation, c.beqz, c.bnez
	c.li a3, \value
	\operation a3, 1f
	c.j 2f
1:	c.or a0, a2
2:	c.slli a2, 1
	.endr
	.endr
	/* A loop of 2-byte instructions: 10 more. */
	c.li a3, 5
1:	c.addi a0, 2
	c.addi a3, -1
	c.bnez a3, 1b
	c.ldsp ra, 24(sp)
	c.addi16sp sp, 32
	c.jr ra
END_FUNCTION asm_compressed
	.option norvc

/* An addition of 10 by load reserved and store conditional, in both widths; and one whose reservation is spent. */
FUNCTION asm_reserved
	FRAME
	sd zero, 0(sp)
	li t0, 10
1:	lr.d t1, (sp)
	addi t1, t1, 1
	sc.d t2, t1, (sp)
	bnez t2, 1b
	addi t0, t0, -1
	bnez t0, 1b
2:	lr.w.aq t1, (sp)
	addi t1, t1, 100
	sc.w.rl t2, t1, (sp)
	bnez t2, 2b
	sc.d t2, zero, (sp)
	snez t2, t2
	ld a0, 0(sp)
	slli t2, t2, 32
	add a0, a0, t2
	LEAVE
END_FUNCTION asm_reserved

/* Each operation in both widths: old values weighed by 3, and the last new one. */
FUNCTION asm_amo
	FRAME
	li t0, 0x1234567880000005
	sd t0, 0(sp)
	li t1, -7
	li a0, 0
	.irp operation, amoadd, amoswap, amoxor, amoand, amoor, amomin, amomax, amominu, amomaxu
	.irp width, w, d
	addi t1, t1, 3
	\operation\().\width t2, t1, (sp)
	slli t3, a0, 1
	add a0, a0, t3
	add a0, a0, t2
	.endr
	.endr
	amoadd.d.aqrl t2, t1, (sp)
	ld t2, 0(sp)
	xor a0, a0, t2
	LEAVE
END_FUNCTION asm_amo

END_FUNCTIONS
	.section .note.GNU-stack, "", %progbits
