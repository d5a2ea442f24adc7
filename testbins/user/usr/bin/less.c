/*
 * less [file]: shows a screen at a time. After each it waits for a key on the console: q ends it, anything else, and
 * the end of the console's input, goes on.
 */
#include "libc.h"

#define SCREEN 40 /* lines */

int
main(int argc, char *argv[])
{
	static struct reader in;
	static char line[BUFSIZ];
	int console = -1;
	char key;

	if (argc > 1 && (in.fd = open(argv[1], O_RDONLY)) < 0)
		err(1, "%s", argv[1]);
	for (int shown = 0; readline(&in, line, sizeof(line)) != NULL; shown++) {
		if (shown == SCREEN) {
			fflush();
			write(2, ":", 1);
			if (console < 0 && (console = open("/dev/console", O_RDONLY)) < 0)
				err(1, "/dev/console");
			if (read(console, &key, 1) == 1 && key == 'q')
				return (0);
			write(2, "\n", 1);
			shown = 0;
		}
		puts(line);
	}
	return (0);
}
