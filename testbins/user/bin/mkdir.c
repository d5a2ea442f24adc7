/* mkdir directory ... */
#include "libc.h"

int
main(int argc, char *argv[])
{
	int status = 0;

	if (argc == 1)
		errx(1, "usage: mkdir directory ...");
	for (int i = 1; i < argc; i++)
		if (mkdir(argv[i], 0777) != 0) {
			warn("%s", argv[i]);
			status = 1;
		}
	return (status);
}
