/* x86-64: what depends on rip, and what changes it; and the forms that kernels and compilers begin functions with. */
#include "asm.h"

	.set CARRY_ETC, 0x8d7		/* CF PF AF ZF SF OF, and bit 1 that is always set */
	.set SIGN, 0x82

.macro FRAME
	push %rbp
	mov %rsp, %rbp
.endm

/* rax collects one bit per test; `bit` counts them. */
.macro REACHED
	btsq $bit, %rax
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
	pop %rbp
	ret
END_FUNCTION asm_jcc_rel8

FUNCTION asm_jcc_rel32
	FRAME
	xor %eax, %eax
	EVERY_JCC {disp32}
	pop %rbp
	ret
END_FUNCTION asm_jcc_rel32

/* Backwards, as loops have it: 5 * (1 + 2 + ... + 9). */
FUNCTION asm_jcc_backwards
	FRAME
	xor %eax, %eax
	mov $5, %edx
1:	mov $9, %ecx
2:	add %rcx, %rax
	dec %ecx
	jnz 2b
	dec %edx
	{disp32} jg 1b
	pop %rbp
	ret
END_FUNCTION asm_jcc_backwards

/* 10 rounds of loop; loope until the flag changes at 4; loopne until it is set at 3; in bytes 0, 1 and 2. And jrcxz, jecxz: 4 bits above. */
FUNCTION asm_loop
	FRAME
	xor %eax, %eax
	mov $10, %ecx
1:	inc %eax
	loop 1b
	mov $10, %ecx
2:	add $0x100, %eax
	cmp $5, %rcx
	setge %dl
	cmp $1, %dl
	loope 2b
	mov $10, %ecx
3:	add $0x10000, %eax
	cmp $8, %rcx
	loopne 3b
	/* By count, not by flag: 4 more rounds each. */
	mov $4, %ecx
4:	add $0x100, %eax
	cmp %eax, %eax
	loope 4b
	mov $4, %ecx
5:	add $0x10000, %eax
	cmp $-1, %rsp
	loopne 5b
	.set bit, 32
	.irp count, 0, 1
	mov $\count, %ecx
	jrcxz 6f
	jmp 7f
6:	REACHED
7:	.set bit, bit + 1
	movabs $0x100000000 + \count, %rcx
	jecxz 8f
	jmp 9f
8:	REACHED
9:	.set bit, bit + 1
	.endr
	pop %rbp
	ret
END_FUNCTION asm_loop

/* One bit for each form that arrives; ud2 where none of them should fall through to. */
FUNCTION asm_jmp
	FRAME
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
	lea 1f(%rip), %rcx
	jmp *%rcx
	ud2
1:	REACHED
	.set bit, bit + 1
	lea 1f(%rip), %r11
	jmp *%r11
	ud2
1:	REACHED
	.set bit, bit + 1
	/* Through memory: base and displacement; base, index and scale. */
	lea 1f(%rip), %rcx
	push %rcx
	jmp *(%rsp)
	ud2
1:	REACHED
	.set bit, bit + 1
	lea 1f(%rip), %rcx
	mov %rcx, (%rsp)
	mov $2, %edx
	jmp *-16(%rsp,%rdx,8)
	ud2
1:	REACHED
	.set bit, bit + 1
	pop %rcx
	/* Through rip, through a table. */
	jmp *asm_jump_table(%rip)
	ud2
.Ljump_first:
	REACHED
	.set bit, bit + 1
	lea asm_jump_table(%rip), %rdx
	mov $1, %ecx
	jmp *(%rdx,%rcx,8)
	ud2
.Ljump_second:
	REACHED
	.set bit, bit + 1
	/* Through the segment of thread variables. */
	lea 1f(%rip), %rcx
	mov %rcx, %fs:asm_thread_target@tpoff
	jmp *%fs:asm_thread_target@tpoff
	ud2
1:	REACHED
	pop %rbp
	ret
END_FUNCTION asm_jmp

	.pushsection .data.rel.ro.asm_jump_table, "aw", @progbits
	.balign 8
asm_jump_table:
	.quad .Ljump_first, .Ljump_second
asm_call_table:
	.quad asm_add_ten, asm_add_pushed
	.popsection
	.pushsection .tbss.asm_thread_target, "awT", @nobits
	.balign 8
asm_thread_target:
	.zero 8
	.popsection

	.type asm_add_ten, @function
asm_add_ten:
	add $10, %rax
	ret
	.size asm_add_ten, . - asm_add_ten

/* Takes its two words from the stack with it. */
	.type asm_add_pushed, @function
asm_add_pushed:
	add 8(%rsp), %rax
	add 16(%rsp), %rax
	ret $16
	.size asm_add_pushed, . - asm_add_pushed

/* The same in the form with a prefix that compilers use for branch predictors of old. */
	.type asm_rep_ret, @function
asm_rep_ret:
	add $1000, %rax
	rep ret
	.size asm_rep_ret, . - asm_rep_ret

/* 7 times 10, twice the pushed words, 1000, and the address after a call in place, 1. */
FUNCTION asm_call
	FRAME
	push %rbx
	xor %eax, %eax
	call asm_add_ten
	lea asm_add_ten(%rip), %rcx
	call *%rcx
	mov %rcx, %r10
	call *%r10
	push %rcx
	call *(%rsp)
	mov $3, %edx
	call *-24(%rsp,%rdx,8)
	pop %rcx
	call *asm_call_table(%rip)
	mov %rcx, %fs:asm_thread_target@tpoff
	call *%fs:asm_thread_target@tpoff
	mov %rsp, %rbx
	push $100
	push $200
	call asm_add_pushed
	push $-300
	push $0x12345
	call *asm_call_table+8(%rip)
	/* 0 if ret took what was pushed. */
	sub %rsp, %rbx
	add %rbx, %rax
	call asm_rep_ret
	/* A call to the next instruction: old code finds its own address so. */
	call 1f
1:	pop %rcx
	lea 1b(%rip), %rdx
	cmp %rcx, %rdx
	sete %cl
	movzbl %cl, %ecx
	add %rcx, %rax
	pop %rbx
	pop %rbp
	ret
END_FUNCTION asm_call

/* Loads, stores and comparisons with operands at rip, immediate operands behind them included. */
FUNCTION asm_rip
	FRAME
	movl $0x11223344, asm_word(%rip)
	movb $0x55, asm_word+4(%rip)
	movw $0x6677, asm_word+5(%rip)
	mov asm_word(%rip), %rax
	mov asm_word(%rip), %ecx
	add %rcx, %rax
	movzwl asm_word+2(%rip), %ecx
	add %rcx, %rax
	movsbq asm_word+6(%rip), %rcx
	add %rcx, %rax
	mov %rax, asm_word+8(%rip)
	addq $1000, asm_word+8(%rip)
	mov asm_word+8(%rip), %rax
	lea asm_word(%rip), %rcx
	lea asm_word+8(%rip), %rdx
	sub %rcx, %rdx
	add %rdx, %rax
	shl $8, %rax
	.set bit, 0
	cmpb $0x55, asm_word+4(%rip)
	jne 1f
	REACHED
1:	.set bit, bit + 1
	cmpl $0x11223344, asm_word(%rip)
	jne 1f
	REACHED
1:	.set bit, bit + 1
	cmp asm_word(%rip), %rcx
	je 1f
	REACHED
1:	.set bit, bit + 1
	testb $0x80, asm_word+4(%rip)
	jnz 1f
	REACHED
1:	.set bit, bit + 1
	movsd asm_double(%rip), %xmm0
	addsd asm_double+8(%rip), %xmm0
	cvttsd2si %xmm0, %rcx
	add %rcx, %rax
	pushq asm_word(%rip)
	popq asm_word+16(%rip)
	xor asm_word+16(%rip), %rax
	notq asm_word+16(%rip)
	mov asm_word+16(%rip), %rcx
	lea (%rax,%rcx,2), %rax
	pop %rbp
	ret
END_FUNCTION asm_rip

	.pushsection .data.asm_word, "aw", @progbits
	.balign 16
asm_word:
	.zero 24
	.popsection
	.pushsection .rodata.asm_double, "a", @progbits
	.balign 16
asm_double:
	.double 20.5, 21.5
	.popsection

/* Everything that pushes and pops; the sum of what came back, each weighed by 3 more. */
FUNCTION asm_push_pop
	FRAME
	push %rbx
	push %r12
	mov %rsp, %rbx
	xor %eax, %eax
.macro WEIGH register
	lea (%rax,%rax,2), %rax
	add \register, %rax
.endm
	push $7
	pop %rcx
	WEIGH %rcx
	push $-7
	pop %r12
	WEIGH %r12
	push $0x12345678
	pop %rcx
	WEIGH %rcx
	pushw $0x1234
	popw %cx
	movzwl %cx, %ecx
	WEIGH %rcx
	push %rsp
	pop %rcx
	sub %rbx, %rcx
	WEIGH %rcx
	/* An address by rsp: of a push as it was before, of a pop as it is after. */
	push $5
	push $0
	push 8(%rsp)
	pop (%rsp)
	pop %rcx
	pop %rdx
	WEIGH %rcx
	push $6
	pop -8(%rsp)
	mov -8(%rsp), %rcx
	WEIGH %rcx
	push %rbx
	pop %rsp
	mov %rsp, %rcx
	sub %rbx, %rcx
	WEIGH %rcx
	stc
	pushf
	clc
	popf
	sbb %rcx, %rcx
	WEIGH %rcx
	/* A frame with its locals, in one instruction and out by one. */
	enter $32, $0
	movq $9, -8(%rbp)
	mov %rbp, %rcx
	sub %rsp, %rcx
	add -8(%rbp), %rcx
	leave
	WEIGH %rcx
	mov %rsp, %rcx
	sub %rbx, %rcx
	WEIGH %rcx
	mov %rbx, %rsp
	pop %r12
	pop %rbx
	pop %rbp
	ret
END_FUNCTION asm_push_pop

/* Strings: filled, copied both ways, compared, searched; the counters and pointers that are left are part of the sum. */
FUNCTION asm_string
	FRAME
	sub $128, %rsp
	mov %rsp, %rdi
	mov $0x41, %eax
	mov $16, %ecx
	rep stosb
	movabs $0x0807060504030201, %rax
	mov $2, %ecx
	rep stosq
	mov %rsp, %rsi
	lea 64(%rsp), %rdi
	mov $17, %ecx
	rep movsb
	mov $3, %ecx
	lea 8(%rsp), %rsi
	rep movsl
	mov %rdi, %rdx
	sub %rsp, %rdx
	/* Downwards, overlapping. */
	std
	lea 31(%rsp), %rsi
	lea 35(%rsp), %rdi
	mov $20, %ecx
	rep movsb
	cld
	mov %rdi, %r8
	sub %rsp, %r8
	/* Equal for 16 bytes and then not. */
	mov %rsp, %rsi
	lea 64(%rsp), %rdi
	mov $40, %ecx
	repe cmpsb
	mov %rcx, %r9
	mov %rsp, %rdi
	mov $5, %al
	mov $36, %ecx
	repne scasb
	mov %rcx, %r10
	/* None at all: nothing moves. */
	xor %ecx, %ecx
	rep movsq
	mov (%rsp), %rax
	add 16(%rsp), %rax
	add 24(%rsp), %rax
	add 64(%rsp), %rax
	add 80(%rsp), %rax
	shl $4, %rdx
	add %rdx, %rax
	shl $8, %r8
	add %r8, %rax
	shl $16, %r9
	add %r9, %rax
	shl $24, %r10
	add %r10, %rax
	leave
	ret
END_FUNCTION asm_string

/* Locked: an addition of 10 by cmpxchg, one that fails, xadd, xchg, bts. */
FUNCTION asm_locked
	FRAME
	push %rbx
	push $32
	mov $10, %ecx
1:	mov (%rsp), %rax
	lea 1(%rax), %rdx
	lock cmpxchg %rdx, (%rsp)
	jne 1b
	dec %ecx
	jnz 1b
	mov $1, %eax
	mov $99, %edx
	lock cmpxchg %rdx, (%rsp)
	setne %cl
	movzbl %cl, %ecx
	shl $16, %rcx
	add %rcx, %rax
	mov $8, %ecx
	lock xadd %rcx, (%rsp)
	shl $24, %rcx
	add %rcx, %rax
	lock btsq $40, (%rsp)
	lock incq (%rsp)
	mov $3, %ecx
	xchg %rcx, (%rsp)
	add %rcx, %rax
	/* Sixteen bytes. */
	mov %rax, %r8
	sub $24, %rsp
	and $-16, %rsp
	movq $1, (%rsp)
	movq $2, 8(%rsp)
	mov $1, %eax
	mov $2, %edx
	mov $30, %ebx
	mov $40, %ecx
	lock cmpxchg16b (%rsp)
	mov (%rsp), %rax
	add 8(%rsp), %rax
	add %r8, %rax
	mov -8(%rbp), %rbx
	leave
	ret
END_FUNCTION asm_locked

/* How functions begin: each of the forms is called and leaves again; the count of those that came back. */
	.type asm_entry_endbr, @function
asm_entry_endbr:
	endbr64
	push %rbp
	mov %rsp, %rbp
	inc %eax
	pop %rbp
	ret
	.size asm_entry_endbr, . - asm_entry_endbr

	.type asm_entry_sub, @function
asm_entry_sub:
	sub $0x108, %rsp
	inc %eax
	add $0x108, %rsp
	ret
	.size asm_entry_sub, . - asm_entry_sub

	.type asm_entry_nop, @function
asm_entry_nop:
	nopl 0(%rax,%rax,1)
	inc %eax
	ret
	.size asm_entry_nop, . - asm_entry_nop

	.type asm_entry_long_move, @function
asm_entry_long_move:
	.byte 0x55, 0x48, 0x8b, 0xec	/* push %rbp; mov %rsp, %rbp in its other encoding */
	inc %eax
	leave
	ret
	.size asm_entry_long_move, . - asm_entry_long_move

FUNCTION asm_entries
	FRAME
	xor %eax, %eax
	call asm_entry_endbr
	call asm_entry_sub
	call asm_entry_nop
	call asm_entry_long_move
	pop %rbp
	ret
END_FUNCTION asm_entries

END_FUNCTIONS
	.section .note.GNU-stack, "", @progbits
