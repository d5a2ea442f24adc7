/* echo [-n] [string ...] */
#include "libc.h"

int
main(int argc, char *argv[])
{
	bool newline = true;
	int i = 1;

	if (argc > 1 && strcmp(argv[1], "-n") == 0) {
		newline = false;
		i++;
	}
	for (; i < argc; i++) {
		fputs(argv[i]);
		if (i < argc - 1)
			putchar(' ');
	}
	if (newline)
		putchar('\n');
	return (0);
}
