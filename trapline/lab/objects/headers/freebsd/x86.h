/*
 * What dtrace_asm.S of x86 needs of its kernel, and C shares with it: numbers, and macros of the
 * assembler.  freebsd.h compares the offsets of the trap frame with its structure.
 */
#ifndef TRAPLINE_X86_H
#define TRAPLINE_X86_H

/* The answers of dtrace_invop: the instruction to emulate. */
#define DTRACE_INVOP_PUSHL_EBP 1
#define DTRACE_INVOP_POPL_EBP 2
#define DTRACE_INVOP_LEAVE 3
#define DTRACE_INVOP_NOP 4
#define DTRACE_INVOP_RET 5
#define DTRACE_INVOP_CALL 6

#ifdef __x86_64__
#define TF_RDI 0
#define TF_RSI 8
#define TF_RDX 16
#define TF_RCX 24
#define TF_R8 32
#define TF_R9 40
#define TF_RAX 48
#define TF_RBX 56
#define TF_RBP 64
#define TF_R10 72
#define TF_R11 80
#define TF_R12 88
#define TF_R13 96
#define TF_R14 104
#define TF_R15 112
#define TF_RIP 152
#define TF_CS 160
#define TF_RFLAGS 168
#define TF_RSP 176
#define TF_SS 184
#endif

#define SEL_RPL_MASK 3

#ifdef __ASSEMBLER__
#define ALTENTRY(name) .globl name; .type name, @function; name:
#define ENTRY(name) .text; .balign 16; ALTENTRY(name)
#define END(name) .size name, . - name
#endif

#endif
