/* kldload file ...: loads files into the kernel */
#include "libc.h"

int
main(int argc, char *argv[])
{
	int verbose = 0, status = 0, i = 1, id;

	if (argc > 1 && strcmp(argv[1], "-v") == 0)
		verbose = i++;
	if (i == argc)
		errx(1, "usage: kldload [-v] file ...");
	for (; i < argc; i++) {
		if ((id = kldload(argv[i])) >= 0) {
			if (verbose)
				printf("Loaded %s, id=%d\n", argv[i], id);
			continue;
		}
		status = 1;
		if (errno == EEXIST)
			warnx("can't load %s: module already loaded or in kernel", argv[i]);
		else if (errno == ENOEXEC)
			warnx("an error occurred while loading module %s. Please check dmesg(8) for more details.", argv[i]);
		else
			warn("can't load %s", argv[i]);
	}
	return (status);
}
