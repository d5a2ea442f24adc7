/* su uid command [argument ...]: runs a command as another user. */
#include "libc.h"

int
main(int argc, char *argv[])
{
	if (argc < 3)
		errx(1, "usage: su uid command [argument ...]");
	if (setuid(atol(argv[1])) != 0)
		err(1, "setuid");
	execvp(argv[2], argv + 2);
	err(1, "%s", argv[2]);
}
