/* ln file name: another name for a file */
#include "libc.h"

int
main(int argc, char *argv[])
{
	if (argc != 3)
		errx(1, "usage: ln file name");
	if (link(argv[1], argv[2]) != 0)
		err(1, "%s", argv[2]);
	return (0);
}
