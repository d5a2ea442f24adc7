/* 64-bit division, which the processor has not: what GCC calls (FreeBSD sys/libkern/qdivrem.c and its friends). */
#include "sys/types.h"

uint64_t __udivmoddi4(uint64_t n, uint64_t d, uint64_t *remainder);
uint64_t __udivdi3(uint64_t n, uint64_t d);
uint64_t __umoddi3(uint64_t n, uint64_t d);
int64_t __divdi3(int64_t n, int64_t d);
int64_t __moddi3(int64_t n, int64_t d);

/* divl requires that its quotient fits. */
static inline uint32_t
divl(uint32_t high, uint32_t low, uint32_t d, uint32_t *remainder)
{
	uint32_t quotient;

	__asm__("divl %4" : "=a"(quotient), "=d"(*remainder) : "0"(low), "1"(high), "rm"(d) : "cc");
	return quotient;
}

/* By a divisor of one word: long division with two digits. Else a quotient of one word: shift and subtract. */
uint64_t
__udivmoddi4(uint64_t n, uint64_t d, uint64_t *remainder)
{
	uint64_t quotient = 0, rest = n;

	if (d >> 32 == 0) {
		uint32_t high = (uint32_t)(n >> 32), carried, left;

		carried = high % (uint32_t)d;
		quotient = (uint64_t)(high / (uint32_t)d) << 32;
		quotient |= divl(carried, (uint32_t)n, (uint32_t)d, &left);
		rest = left;
	} else {
		int shift = __builtin_clz((uint32_t)(d >> 32));

		for (d <<= shift; shift >= 0; shift--, d >>= 1) {
			quotient <<= 1;
			if (rest >= d) {
				rest -= d;
				quotient |= 1;
			}
		}
	}
	if (remainder != NULL)
		*remainder = rest;
	return quotient;
}

uint64_t
__udivdi3(uint64_t n, uint64_t d)
{
	return __udivmoddi4(n, d, NULL);
}

uint64_t
__umoddi3(uint64_t n, uint64_t d)
{
	uint64_t rest;

	__udivmoddi4(n, d, &rest);
	return rest;
}

int64_t
__divdi3(int64_t n, int64_t d)
{
	uint64_t quotient = __udivmoddi4(n < 0 ? -(uint64_t)n : (uint64_t)n, d < 0 ? -(uint64_t)d : (uint64_t)d, NULL);

	return (n < 0) != (d < 0) ? -quotient : quotient;
}

int64_t
__moddi3(int64_t n, int64_t d)
{
	uint64_t rest;

	__udivmoddi4(n < 0 ? -(uint64_t)n : (uint64_t)n, d < 0 ? -(uint64_t)d : (uint64_t)d, &rest);
	return n < 0 ? -rest : rest;
}
