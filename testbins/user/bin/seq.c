/* seq [first [step]] last */
#include "libc.h"

int
main(int argc, char *argv[])
{
	long first = argc > 2 ? atol(argv[1]) : 1, step = argc > 3 ? atol(argv[2]) : 1, last;

	if (argc < 2 || argc > 4)
		errx(1, "usage: seq [first [step]] last");
	last = atol(argv[argc - 1]);
	if (step == 0)
		errx(1, "zero step");
	for (; step > 0 ? first <= last : first >= last; first += step)
		printf("%ld\n", first);
	return (0);
}
