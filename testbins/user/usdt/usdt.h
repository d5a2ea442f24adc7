/*
 * Probes of user programs. On amd64 a linker's helper (dtrace -G) turns calls into no-operations and describes them in DOF; FreeBSD has
 * none for AArch64 and RISC-V. So here a probe is a no-operation from the start, its arguments in the registers of a call, and a record of
 * it lies in the section set_usdt, of which drti.c makes the DOF when the object is loaded.
 *
 *   USDT2(function, provider, name, type, argument, type, argument);   function is the one it stands in, which is __probed
 *   if (USDT_ENABLED(function, provider, name)) ...                    only while somebody listens
 */
#ifndef USDT_H
#define USDT_H

#include "sys/types.h"

/* A function with probes: under its own name, in one place. */
#define __probed __attribute__((noipa))

struct usdt_site {
	uint64_t address;
	uint64_t function;
	const char *function_name, *provider, *name;
	const char *types;   /* of the arguments, each with its NUL */
	uint64_t nargs;
	uint64_t is_enabled; /* no probe: a question whether there is one */
};

#if defined(__x86_64__)
#define USDT_NOP "nop"
#define USDT_ARG0 "rdi"
#define USDT_ARG1 "rsi"
#define USDT_ARG2 "rdx"
#define USDT_ARG3 "rcx"
#define USDT_RESULT "rax"
#elif defined(__aarch64__)
#define USDT_NOP "nop"
#define USDT_ARG0 "x0"
#define USDT_ARG1 "x1"
#define USDT_ARG2 "x2"
#define USDT_ARG3 "x3"
#define USDT_RESULT "x0"
#elif defined(__riscv)
#define USDT_NOP "nop"
#define USDT_ARG0 "a0"
#define USDT_ARG1 "a1"
#define USDT_ARG2 "a2"
#define USDT_ARG3 "a3"
#define USDT_RESULT "a0"
#endif

#define USDT_RECORD(function, provider, name, types, nargs, is_enabled)                          \
	"990:	" USDT_NOP "\n"                                                                    \
	"	.pushsection .rodata.usdt, \"a\"\n"                                                \
	"991:	.asciz \"" #function "\"\n992:	.asciz \"" #provider "\"\n993:	.asciz \"" #name "\"\n" \
	"994:	.asciz " types "\n"                                                                \
	"	.popsection\n"                                                                     \
	"	.pushsection set_usdt, \"aw\"\n"                                                   \
	"	.balign 8\n"                                                                       \
	"	.quad 990b, " #function ", 991b, 992b, 993b, 994b, " #nargs ", " #is_enabled "\n"  \
	"	.popsection\n"

#define USDT_VALUE(n, value) register uint64_t usdt_value##n __asm__(USDT_ARG##n) = (uint64_t)(value)

#define USDT0(f, p, n) __asm__ volatile(USDT_RECORD(f, p, n, "\"\"", 0, 0) ::: "memory")
#define USDT1(f, p, n, t0, a0)                                                                                \
	do {                                                                                                  \
		USDT_VALUE(0, a0);                                                                            \
		__asm__ volatile(USDT_RECORD(f, p, n, "\"" #t0 "\"", 1, 0)::"r"(usdt_value0) : "memory");     \
	} while (0)
#define USDT2(f, p, n, t0, a0, t1, a1)                                                                        \
	do {                                                                                                  \
		uint64_t usdt_second = (uint64_t)(a1);                                                        \
		USDT_VALUE(0, a0);                                                                            \
		USDT_VALUE(1, usdt_second);                                                                   \
		__asm__ volatile(USDT_RECORD(f, p, n, "\"" #t0 "\", \"" #t1 "\"", 2, 0)::"r"(usdt_value0),    \
		    "r"(usdt_value1)                                                                          \
		    : "memory");                                                                              \
	} while (0)
#define USDT3(f, p, n, t0, a0, t1, a1, t2, a2)                                                                \
	do {                                                                                                  \
		uint64_t usdt_second = (uint64_t)(a1), usdt_third = (uint64_t)(a2);                           \
		USDT_VALUE(0, a0);                                                                            \
		USDT_VALUE(1, usdt_second);                                                                   \
		USDT_VALUE(2, usdt_third);                                                                    \
		__asm__ volatile(USDT_RECORD(f, p, n, "\"" #t0 "\", \"" #t1 "\", \"" #t2 "\"", 3, 0)::"r"(usdt_value0), \
		    "r"(usdt_value1), "r"(usdt_value2)                                                        \
		    : "memory");                                                                              \
	} while (0)

#define USDT_ENABLED(f, p, n)                                                                                 \
	({                                                                                                    \
		register uint64_t usdt_enabled __asm__(USDT_RESULT) = 0;                                      \
		__asm__ volatile(USDT_RECORD(f, p, n, "\"\"", 0, 1) : "+r"(usdt_enabled));                    \
		usdt_enabled != 0;                                                                            \
	})

#endif
