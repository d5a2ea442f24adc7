/* The conditions of A64 and A32 instructions, by their numbers: N, Z, C and V are bits 31 to 28 of PSTATE. */
#ifndef TRAPLINE_ASM_TRAPS_H
#define TRAPLINE_ASM_TRAPS_H
#include <asm/insn.h>

#define TRAPLINE_CONDITION(number, test) \
	static bool trapline_condition_##number(unsigned long p) \
	{ \
		bool n = p >> 31 & 1, z = p >> 30 & 1, c = p >> 29 & 1, v = p >> 28 & 1; \
		(void)n, (void)z, (void)c, (void)v; \
		return test; \
	}
TRAPLINE_CONDITION(0, z)
TRAPLINE_CONDITION(1, !z)
TRAPLINE_CONDITION(2, c)
TRAPLINE_CONDITION(3, !c)
TRAPLINE_CONDITION(4, n)
TRAPLINE_CONDITION(5, !n)
TRAPLINE_CONDITION(6, v)
TRAPLINE_CONDITION(7, !v)
TRAPLINE_CONDITION(8, c && !z)
TRAPLINE_CONDITION(9, !c || z)
TRAPLINE_CONDITION(10, n == v)
TRAPLINE_CONDITION(11, n != v)
TRAPLINE_CONDITION(12, !z && n == v)
TRAPLINE_CONDITION(13, z || n != v)
TRAPLINE_CONDITION(14, true)
/* Weak: several sources include it. */
__attribute__((weak)) pstate_check_t *const aarch32_opcode_cond_checks[16] = {
	trapline_condition_0, trapline_condition_1, trapline_condition_2, trapline_condition_3,
	trapline_condition_4, trapline_condition_5, trapline_condition_6, trapline_condition_7,
	trapline_condition_8, trapline_condition_9, trapline_condition_10, trapline_condition_11,
	trapline_condition_12, trapline_condition_13, trapline_condition_14, trapline_condition_14,
};

#endif
