#include "counted.h"

static long seen[2000] = { 1 };
unsigned short toolchain_gated_semaphore __attribute__((section(".probes"))) = 0;
unsigned short toolchain_mark_semaphore __attribute__((section(".probes"))) = 0;


WHOLE static int helper(int n) { COUNTED("helper"); return n + 10; }
WHOLE int from_one(int n) { COUNTED("from_one"); return helper(n) * 2; }

WHOLE int leaf(int n)
{
	COUNTED("leaf");
	COUNTED("(marker) mark");
	DTRACE_PROBE2(toolchain, mark, n, seen[0]);
	return n * 3;
}

/* No compiler can turn calls through this into a loop. */
static int (*volatile again)(int) = recurse;

WHOLE int recurse(int n)
{
	COUNTED("recurse");
	return n < 2 ? n : again(n - 1) + again(n - 2);
}

WHOLE int tail(int n)
{
	COUNTED("tail");
	return leaf(n + 1);
}

WHOLE int choose(int n)
{
	COUNTED("choose");
	if (__builtin_expect(toolchain_gated_semaphore, 0))
		DTRACE_PROBE1(toolchain, gated, n);
	COUNTED("(marker) gated");
	switch (n % 8) {
	case 0: return leaf(n);
	case 1: return 7;
	case 2: return n << 3;
	case 3: return -n;
	case 4: return n / 3;
	case 5: return recurse(3);
	case 6: return 11;
	default: return n ^ 5;
	}
}
