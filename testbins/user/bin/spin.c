/* spin [-y] [n]: n thousand times round a loop, without a system call; with -y the CPU is offered after each thousand */
#include "libc.h"

static volatile uint64_t sink;

__noinline static uint64_t
round_and_round(uint64_t x)
{
	for (int i = 0; i < 1000; i++)
		x = x * 6364136223846793005 + 1442695040888963407;
	return (x);
}

int
main(int argc, char *argv[])
{
	bool yield = argc > 1 && strcmp(argv[1], "-y") == 0;
	long n = argc > 1 + yield ? atol(argv[1 + yield]) : 100;
	uint64_t x = 1;

	for (long i = 0; i < n; i++) {
		x = round_and_round(x);
		if (yield)
			sched_yield();
	}
	sink = x;
	printf("spin: %ld rounds, %jx\n", n, x);
	return (0);
}
