/* kldunload name ...: takes files out of the kernel; -i: they are given by number */
#include "libc.h"

int
main(int argc, char *argv[])
{
	int by_id = 0, status = 0, i = 1, id;

	if (argc > 1 && strcmp(argv[1], "-i") == 0)
		by_id = i++;
	if (i == argc)
		errx(1, "usage: kldunload [-i] name ...");
	for (; i < argc; i++) {
		id = by_id ? atol(argv[i]) : kldfind(argv[i]);
		if (id < 0) {
			warn("can't find file %s", argv[i]);
			status = 1;
		} else if (kldunload(id) != 0) {
			warn("can't unload file");
			status = 1;
		}
	}
	return (status);
}
