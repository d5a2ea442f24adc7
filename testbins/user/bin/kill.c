/* kill [-signal] pid ... */
#include "libc.h"

int
main(int argc, char *argv[])
{
	int sig = SIGTERM, i = 1, status = 0;

	if (argc > 1 && argv[1][0] == '-')
		sig = atol(argv[i++] + 1);
	if (i == argc)
		errx(1, "usage: kill [-signal] pid ...");
	for (; i < argc; i++)
		if (kill(atol(argv[i]), sig) != 0) {
			warn("%s", argv[i]);
			status = 1;
		}
	return (status);
}
