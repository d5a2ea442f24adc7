/* sleep seconds: a fraction is allowed */
#include "libc.h"

int
main(int argc, char *argv[])
{
	struct timespec time;
	const char *point;

	if (argc != 2)
		errx(1, "usage: sleep seconds");
	time = (struct timespec){ atol(argv[1]), 0 };
	if ((point = strchr(argv[1], '.')) != NULL)
		for (int64_t unit = 100000000; *++point != '\0' && unit > 0; unit /= 10)
			time.tv_nsec += (*point - '0') * unit;
	if (nanosleep(&time, NULL) != 0)
		err(1, "nanosleep");
	return (0);
}
