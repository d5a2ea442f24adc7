/* callnum number [argument ...]: makes a system call that libc may not know, and prints its result */
#include "libc.h"

int
main(int argc, char *argv[])
{
	long argument[3] = { 0 };

	if (argc < 2 || argc > 5)
		errx(1, "usage: callnum number [argument ...]");
	for (int i = 2; i < argc; i++)
		argument[i - 2] = atol(argv[i]);
	errno = 0;
	printf("%d\n", syscall(atol(argv[1]), argument[0], argument[1], argument[2]));
	if (errno != 0)
		err(1, "system call %s", argv[1]);
	return (0);
}
