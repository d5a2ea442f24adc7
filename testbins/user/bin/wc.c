/* wc [-clw] [file ...] */
#include "libc.h"

static bool lines, words, bytes;

static void
report(const uint64_t count[3], const char *name)
{
	if (lines)
		printf(" %7ju", count[0]);
	if (words)
		printf(" %7ju", count[1]);
	if (bytes)
		printf(" %7ju", count[2]);
	if (name != NULL)
		printf(" %s", name);
	putchar('\n');
}

static int
count(int fd, const char *name, uint64_t total[3])
{
	uint64_t here[3] = { 0, 0, 0 };
	char buffer[BUFSIZ];
	bool inside = false;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		here[2] += n;
		for (ssize_t i = 0; i < n; i++) {
			bool space = buffer[i] == ' ' || buffer[i] == '\n' || buffer[i] == '\t';

			here[0] += buffer[i] == '\n';
			here[1] += !space && !inside;
			inside = !space;
		}
	}
	if (n < 0)
		warn("%s", name);
	else
		report(here, name);
	for (int i = 0; i < 3; i++)
		total[i] += here[i];
	return (n < 0);
}

int
main(int argc, char *argv[])
{
	uint64_t total[3] = { 0, 0, 0 };
	int i = 1, first, fd, status = 0;

	for (; i < argc && argv[i][0] == '-'; i++)
		for (const char *c = argv[i] + 1; *c != '\0'; c++)
			if (*c == 'c')
				bytes = true;
			else if (*c == 'l')
				lines = true;
			else if (*c == 'w')
				words = true;
			else
				errx(1, "no such option: -%c", *c);
	if (!lines && !words && !bytes)
		lines = words = bytes = true;
	if (i == argc)
		return (count(0, NULL, total));
	for (first = i; i < argc; i++) {
		if ((fd = open(argv[i], O_RDONLY)) < 0) {
			warn("%s", argv[i]);
			status = 1;
			continue;
		}
		status |= count(fd, argv[i], total);
		close(fd);
	}
	if (argc - first > 1)
		report(total, "total");
	return (status);
}
