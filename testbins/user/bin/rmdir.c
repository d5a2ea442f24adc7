/* rmdir directory ... */
#include "libc.h"

int
main(int argc, char *argv[])
{
	int status = 0;

	if (argc == 1)
		errx(1, "usage: rmdir directory ...");
	for (int i = 1; i < argc; i++)
		if (rmdir(argv[i]) != 0) {
			warn("%s", argv[i]);
			status = 1;
		}
	return (status);
}
