/*
 * What exception.S of illumos needs: numbers, which C shares with it, and macros of the assembler.
 * illumos.h compares the offsets of the saved registers with their structure.
 */
#ifndef TRAPLINE_ASM_H
#define TRAPLINE_ASM_H

#if defined(__x86_64__) && !defined(__amd64)
#define __amd64 1
#endif

/* The answers of dtrace_invop: the instruction to emulate. */
#define DTRACE_INVOP_PUSHL_EBP 1
#define DTRACE_INVOP_POPL_EBP 2
#define DTRACE_INVOP_LEAVE 3
#define DTRACE_INVOP_NOP 4
#define DTRACE_INVOP_RET 5

/* The kernel's selectors. The emulated i386 has flat segments without a gs of its own. */
#define KCS_SEL 0x28
#define KGS_SEL 0

#define T_BPTFLT 0x3
#define T_ILLINST 0x6
#define T_DTRACE_RET 0x7f

#ifdef __amd64
#define REGOFF_RDI 16
#define REGOFF_RSI 24
#define REGOFF_RDX 32
#define REGOFF_RCX 40
#define REGOFF_R8 48
#define REGOFF_R9 56
#define REGOFF_RAX 64
#define REGOFF_RBX 72
#define REGOFF_RBP 80
#define REGOFF_R10 88
#define REGOFF_R11 96
#define REGOFF_R12 104
#define REGOFF_R13 112
#define REGOFF_R14 120
#define REGOFF_R15 128
#define REGOFF_TRAPNO 184
#define REGOFF_ERR 192
#define REGOFF_RIP 200
#define REGOFF_RSP 224
#endif

#ifdef __ASSEMBLER__
#define ENTRY_NP(name) .text; .balign 16; .globl name; .type name, @function; name:
#define ALTENTRY(name) .globl name; .type name, @function; name:
#define SET_SIZE(name) .size name, . - name
#define XPV_TRAP_POP
#ifdef __amd64
#define IRET iretq
#define EACH_REGISTER(what) \
	what(RDI, rdi) what(RSI, rsi) what(RDX, rdx) what(RCX, rcx) what(R8, r8) what(R9, r9) what(RAX, rax) \
	what(RBX, rbx) what(RBP, rbp) what(R10, r10) what(R11, r11) what(R12, r12) what(R13, r13) \
	what(R14, r14) what(R15, r15)
#define SAVE(offset, register) movq %register, REGOFF_##offset(%rsp);
#define RESTORE(offset, register) movq REGOFF_##offset(%rsp), %register;
/* Trap and error number are pushed before; frame pointer and pc begin the structure. */
#define INTR_PUSH \
	subq $REGOFF_TRAPNO, %rsp; EACH_REGISTER(SAVE) \
	movq %rbp, 0(%rsp); movq REGOFF_RIP(%rsp), %rbp; movq %rbp, 8(%rsp); movq %rsp, %rbp
#define INTR_POP EACH_REGISTER(RESTORE) addq $REGOFF_RIP, %rsp
#else
#define IRET iret
#endif
#endif

#endif
