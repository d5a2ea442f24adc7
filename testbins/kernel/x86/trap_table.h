/* What an exception is, for both sizes of x86. */
#ifndef TRAP_TABLE_H
#define TRAP_TABLE_H

#include "sys/signal.h"
#include "trap.h"

/* Page fault error code (Intel SDM volume 3, 4.7). */
#define PGEX_W 0x02
#define PGEX_I 0x10

/* What an exception is called, and the signal a program gets for it; 0: never a program's doing. */
static const struct {
	const char *name;
	int signal;
} traps[T_MAX + 1] = {
	[T_PRIVINFLT] = { "undefined instruction", SIGILL },
	[T_BPTFLT] = { "breakpoint", SIGTRAP },
	[T_ARITHTRAP] = { "x87 exception", SIGFPE },
	[T_PROTFLT] = { "general protection fault", SIGBUS },
	[T_TRCTRAP] = { "debug exception", SIGTRAP },
	[T_ALIGNFLT] = { "alignment fault", SIGBUS },
	[T_DIVIDE] = { "divide error", SIGFPE },
	[T_NMI] = { "non-maskable interrupt", 0 },
	[T_OFLOW] = { "overflow", SIGFPE },
	[T_BOUND] = { "bound exception", SIGFPE },
	[T_DNA] = { "x87 instruction", SIGILL },
	[T_DOUBLEFLT] = { "double fault", 0 },
	[T_TSSFLT] = { "invalid TSS", 0 },
	[T_SEGNPFLT] = { "segment not present", SIGBUS },
	[T_STKFLT] = { "stack fault", SIGBUS },
	[T_MCHK] = { "machine check", 0 },
	[T_XMMFLT] = { "SSE exception", SIGFPE },
	[T_RESERVED] = { "reserved exception", 0 },
};

#endif
