/* cat [file ...] */
#include "libc.h"

static int
cook(int fd, const char *name)
{
	char buffer[BUFSIZ];
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(1, buffer, n) != n)
			err(1, "stdout");
	if (n < 0)
		warn("%s", name);
	return (n < 0);
}

int
main(int argc, char *argv[])
{
	int status = 0, fd;

	if (argc == 1)
		return (cook(0, "stdin"));
	for (int i = 1; i < argc; i++) {
		if ((fd = open(argv[i], O_RDONLY)) < 0) {
			warn("%s", argv[i]);
			status = 1;
			continue;
		}
		status |= cook(fd, argv[i]);
		close(fd);
	}
	return (status);
}
