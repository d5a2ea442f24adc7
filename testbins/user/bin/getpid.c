/* getpid [n]: asks n times (1000) for the process number: the cheapest system call, for measuring */
#include "libc.h"

int
main(int argc, char *argv[])
{
	long n = argc > 1 ? atol(argv[1]) : 1000;

	for (long i = 0; i < n; i++)
		if (getpid() <= 0)
			errx(1, "no process number");
	printf("getpid: %ld calls\n", n);
	return (0);
}
