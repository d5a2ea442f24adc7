/*
 * Code that runs only while something is traced.
 *
 *	TRACED(TRACED_TEST8(flag), { ... });
 *
 * The branch at rest is a test and a jump that is not taken. What it jumps to is not the program's work, so the clock
 * stands still there: the emulator reads where such stretches begin and end from two linker sets, and a kernel that is
 * traced keeps the time of one that is not. The branch leaves a label's address in traced_begin_set, the jump back its
 * own in traced_end_set, so both are exact whatever the compiler puts between. TRACED_TEST*, TRACED_RETURN: traced_machdep.h.
 *
 * Where the two ways meet there is an empty asm, unlike any other, past which no jump is threaded; and what the stretch computes goes through
 * TRACED_VALUE, so that the compiler does not compute it on the way at rest too, for use by both. The asm names the frame,
 * so that the function has one on both ways.
 */
#ifndef SYS_TRACED_H
#define SYS_TRACED_H

#include "traced_machdep.h"

#if __SIZEOF_POINTER__ == 8
#define TRACED_WORD ".quad"
#else
#define TRACED_WORD ".long"
#endif

/* owed: instructions at rest that the branch taken left out. */
#define TRACED_BEGINS(owed) TRACED_BEGINS_WITH(owed)
#define TRACED_BEGINS_WITH(owed) ".pushsection set_traced_begin_set, \"a\"\n\t" TRACED_WORD " %l[slow], " #owed "\n\t.popsection\n"
#define TRACED_ENDS ".pushsection set_traced_end_set, \"a\"\n\t" TRACED_WORD " 1b\n\t.popsection\n"

#define TRACED_VALUE(expression)                         \
	({                                               \
		__auto_type value_ = (expression);       \
		asm volatile("" : "+r"(value_));         \
		(uintptr_t)value_;                       \
	})

#define TRACED(branch, ...)                                                                            \
	do {                                                                                           \
		__label__ slow, join;                                                                  \
		branch;                                                                                \
		goto join;                                                                             \
	slow:	__attribute__((cold));                                                                 \
		__VA_ARGS__                                                                            \
		asm goto("1: " TRACED_RETURN " %l[join]\n\t" TRACED_ENDS : : : "memory" : join); \
		__builtin_unreachable();                                                               \
	join:	asm volatile("" : : "i"(__LINE__), "X"(__builtin_frame_address(0)));                   \
	} while (0)

#endif
