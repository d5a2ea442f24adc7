/* grep [-cnv] string [file ...]: fixed strings */
#include "libc.h"

static bool counting, numbering, inverted;

static bool
search(int fd, const char *wanted, const char *name)
{
	static struct reader in;
	char line[BUFSIZ];
	unsigned number = 0, found = 0;

	in = (struct reader){ .fd = fd };
	while (readline(&in, line, sizeof(line)) != NULL) {
		number++;
		if ((strstr(line, wanted) != NULL) == inverted)
			continue;
		found++;
		if (counting)
			continue;
		if (name != NULL)
			printf("%s:", name);
		if (numbering)
			printf("%u:", number);
		puts(line);
	}
	if (counting) {
		if (name != NULL)
			printf("%s:", name);
		printf("%u\n", found);
	}
	return (found > 0);
}

int
main(int argc, char *argv[])
{
	bool found = false, failed = false;
	int i = 1, fd;

	for (; i < argc && argv[i][0] == '-'; i++)
		for (const char *c = argv[i] + 1; *c != '\0'; c++)
			if (*c == 'c')
				counting = true;
			else if (*c == 'n')
				numbering = true;
			else if (*c == 'v')
				inverted = true;
			else
				errx(2, "no such option: -%c", *c);
	if (i == argc)
		errx(2, "usage: grep [-cnv] string [file ...]");
	const char *wanted = argv[i++];
	if (i == argc)
		return (!search(0, wanted, NULL));
	for (int first = i; i < argc; i++) {
		if ((fd = open(argv[i], O_RDONLY)) < 0) {
			warn("%s", argv[i]);
			failed = true;
			continue;
		}
		found |= search(fd, wanted, argc - first > 1 ? argv[i] : NULL);
		close(fd);
	}
	return (failed ? 2 : !found);
}
