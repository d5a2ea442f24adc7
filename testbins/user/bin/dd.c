/* dd [if=file] [of=file] [bs=bytes] [count=blocks] */
#include "libc.h"

int
main(int argc, char *argv[])
{
	const char *input = NULL, *output = NULL;
	long size = 512, count = -1;
	uint64_t full[2] = { 0, 0 }, part[2] = { 0, 0 }, bytes = 0;
	int in = 0, out = 1;
	char *buffer;
	ssize_t n;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "if=", 3) == 0)
			input = argv[i] + 3;
		else if (strncmp(argv[i], "of=", 3) == 0)
			output = argv[i] + 3;
		else if (strncmp(argv[i], "bs=", 3) == 0)
			size = atol(argv[i] + 3);
		else if (strncmp(argv[i], "count=", 6) == 0)
			count = atol(argv[i] + 6);
		else
			errx(1, "unknown operand %s", argv[i]);
	}
	if (size <= 0)
		errx(1, "bs must be positive");
	if (input != NULL && (in = open(input, O_RDONLY)) < 0)
		err(1, "%s", input);
	if (output != NULL && (out = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666)) < 0)
		err(1, "%s", output);
	if ((buffer = malloc(size)) == NULL)
		err(1, "malloc");
	for (; count != 0 && (n = read(in, buffer, size)) > 0; count--) {
		(n == size ? full : part)[0]++;
		if (write(out, buffer, n) != n)
			err(1, "%s", output != NULL ? output : "stdout");
		(n == size ? full : part)[1]++;
		bytes += n;
	}
	if (count != 0 && n < 0)
		err(1, "%s", input != NULL ? input : "stdin");
	/* dd reports on standard error; without times, which would not be the same on every ISA. */
	warnx("%ju+%ju records in, %ju+%ju records out, %ju bytes", full[0], part[0], full[1], part[1], bytes);
	return (0);
}
