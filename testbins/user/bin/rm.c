/* rm [-f] file ... */
#include "libc.h"

int
main(int argc, char *argv[])
{
	bool force = argc > 1 && strcmp(argv[1], "-f") == 0;
	int status = 0;

	if (argc == 1)
		errx(1, "usage: rm [-f] file ...");
	for (int i = 1 + force; i < argc; i++)
		if (unlink(argv[i]) != 0 && !(force && errno == ENOENT)) {
			warn("%s", argv[i]);
			status = 1;
		}
	return (status);
}
