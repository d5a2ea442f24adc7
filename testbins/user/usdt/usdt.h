/*
 * Probes of user programs. On amd64 and i386 a linker's helper (dtrace -G) turns calls into no-operations and describes them in DOF;
 * FreeBSD has none for AArch64 and RISC-V. So here a probe is a no-operation from the start, its arguments where a call has them, and a
 * record of it lies in the section set_usdt, of which drti.c makes the DOF when the object is loaded.
 *
 *   USDT2(function, provider, name, type, argument, type, argument);   function is the one it stands in, which is __probed
 *   if (USDT_ENABLED(function, provider, name)) ...                    only while it is traced
 */
#ifndef USDT_H
#define USDT_H

#include "sys/types.h"

/* A function with probes: under its own name, in one place. */
#define __probed __attribute__((noipa))

struct usdt_site {
	unsigned long address;
	unsigned long function;
	const char *function_name, *provider, *name;
	const char *types;   /* of the arguments, each with its NUL */
	unsigned long nargs;
	unsigned long is_enabled; /* no probe: a question whether there is one */
};

#if defined(__x86_64__)
#define USDT_ARG0 "rdi"
#define USDT_ARG1 "rsi"
#define USDT_ARG2 "rdx"
#define USDT_RESULT "rax"
#elif defined(__aarch64__)
#define USDT_ARG0 "x0"
#define USDT_ARG1 "x1"
#define USDT_ARG2 "x2"
#define USDT_RESULT "x0"
#elif defined(__riscv)
#define USDT_ARG0 "a0"
#define USDT_ARG1 "a1"
#define USDT_ARG2 "a2"
#define USDT_RESULT "a0"
#elif defined(__i386__)
#define USDT_RESULT "eax"
#endif

/* A call's arguments: in its registers, or on the stack with the first on top. */
#ifdef USDT_ARG0
#define USDT_VALUE(n, value) register unsigned long usdt_value##n __asm__(USDT_ARG##n) = (unsigned long)(value)
#define USDT_PUSH1
#define USDT_PUSH2
#define USDT_PUSH3
#define USDT_POP(n)
#define USDT_WORD ".quad"
#define USDT_ALIGN "8"
#else
#define USDT_VALUE(n, value) unsigned long usdt_value##n = (unsigned long)(value)
#define USDT_PUSH1 "	pushl %0\n"
#define USDT_PUSH2 "	pushl %1\n" USDT_PUSH1
#define USDT_PUSH3 "	pushl %2\n" USDT_PUSH2
#define USDT_POP(n) "	addl $4 * " #n ", %%esp\n"
#define USDT_WORD ".long"
#define USDT_ALIGN "4"
#endif

#define USDT_RECORD(function, provider, name, types, nargs, is_enabled)                                   \
	"990:	nop\n"                                                                                    \
	"	.pushsection .rodata.usdt, \"a\"\n"                                                       \
	"991:	.asciz \"" #function "\"\n992:	.asciz \"" #provider "\"\n993:	.asciz \"" #name "\"\n"   \
	"994:	.asciz " types "\n"                                                                       \
	"	.popsection\n"                                                                            \
	"	.pushsection set_usdt, \"aw\"\n"                                                          \
	"	.balign " USDT_ALIGN "\n"                                                                 \
	"	" USDT_WORD " 990b, " #function ", 991b, 992b, 993b, 994b, " #nargs ", " #is_enabled "\n" \
	"	.popsection\n"

#define USDT0(f, p, n) __asm__ volatile(USDT_RECORD(f, p, n, "\"\"", 0, 0) ::: "memory")
#define USDT1(f, p, n, t0, a0)                                                                    \
	do {                                                                                      \
		USDT_VALUE(0, a0);                                                                \
		__asm__ volatile(USDT_PUSH1 USDT_RECORD(f, p, n, "\"" #t0 "\"", 1, 0) USDT_POP(1) \
		    ::"r"(usdt_value0) : "memory");                                               \
	} while (0)
#define USDT2(f, p, n, t0, a0, t1, a1)                                                                         \
	do {                                                                                                   \
		unsigned long usdt_second = (unsigned long)(a1);                                               \
		USDT_VALUE(0, a0);                                                                             \
		USDT_VALUE(1, usdt_second);                                                                    \
		__asm__ volatile(USDT_PUSH2 USDT_RECORD(f, p, n, "\"" #t0 "\", \"" #t1 "\"", 2, 0) USDT_POP(2) \
		    ::"r"(usdt_value0), "r"(usdt_value1) : "memory");                                          \
	} while (0)
#define USDT3(f, p, n, t0, a0, t1, a1, t2, a2)                                                                              \
	do {                                                                                                                \
		unsigned long usdt_second = (unsigned long)(a1), usdt_third = (unsigned long)(a2);                          \
		USDT_VALUE(0, a0);                                                                                          \
		USDT_VALUE(1, usdt_second);                                                                                 \
		USDT_VALUE(2, usdt_third);                                                                                  \
		__asm__ volatile(USDT_PUSH3 USDT_RECORD(f, p, n, "\"" #t0 "\", \"" #t1 "\", \"" #t2 "\"", 3, 0) USDT_POP(3) \
		    ::"r"(usdt_value0), "r"(usdt_value1), "r"(usdt_value2) : "memory");                                     \
	} while (0)

#define USDT_ENABLED(f, p, n)                                                              \
	({                                                                                 \
		register unsigned long usdt_enabled __asm__(USDT_RESULT) = 0;              \
		__asm__ volatile(USDT_RECORD(f, p, n, "\"\"", 0, 1) : "+r"(usdt_enabled)); \
		usdt_enabled != 0;                                                         \
	})

#endif
