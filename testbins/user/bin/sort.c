/* sort [-nr] [file]: lines in order */
#include "libc.h"

static bool numeric, reverse;

static int
compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	long n = numeric ? atol(x) - atol(y) : 0;
	int order = n != 0 ? (n < 0 ? -1 : 1) : strcmp(x, y);

	return (reverse ? -order : order);
}

int
main(int argc, char *argv[])
{
	static struct reader in;
	char line[BUFSIZ], **lines = NULL;
	size_t count = 0;
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++)
		for (const char *c = argv[i] + 1; *c != '\0'; c++)
			if (*c == 'n')
				numeric = true;
			else if (*c == 'r')
				reverse = true;
			else
				errx(2, "no such option: -%c", *c);
	if (i < argc && (in.fd = open(argv[i], O_RDONLY)) < 0)
		err(2, "%s", argv[i]);
	while (readline(&in, line, sizeof(line)) != NULL) {
		if (count % 64 == 0 && (lines = realloc(lines, (count + 64) * sizeof(*lines))) == NULL)
			err(2, "malloc");
		if ((lines[count++] = strdup(line)) == NULL)
			err(2, "malloc");
	}
	qsort(lines, count, sizeof(*lines), compare);
	for (size_t n = 0; n < count; n++)
		puts(lines[n]);
	return (0);
}
