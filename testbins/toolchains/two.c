#include "counted.h"

unsigned short toolchain_late_semaphore __attribute__((section(".probes"))) = 0;

WHOLE static int helper(int n) { COUNTED("helper"); return n + 20; }
WHOLE int from_two(int n) { COUNTED("from_two"); return helper(n) * 2; }
WHOLE int indirect(int (*function)(int), int n) { COUNTED("indirect"); return function(n) + 1; }
WHOLE double half(double x) { COUNTED("half"); return x / 2; }

WHOLE struct pair make(int n)
{
	struct pair made = { n, n + 1, n + 0.5 };

	COUNTED("make");
	return made;
}

WHOLE __attribute__((section(".text.later"))) int later(int n)
{
	COUNTED("later");
	COUNTED("(marker) late");
	DTRACE_PROBE1(toolchain, late, n);
	return n + 5;
}
