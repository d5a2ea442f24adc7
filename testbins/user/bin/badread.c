/* badread: reads from descriptors that are not there, or are for writing only */
#include "libc.h"

static void
attempt(const char *what, int fd)
{
	char buffer[16];
	ssize_t n = read(fd, buffer, sizeof(buffer));

	if (n >= 0)
		errx(1, "%s: read %ld bytes", what, n);
	printf("badread: %s: %s\n", what, strerror(errno));
}

int
main(void)
{
	int out = open("/dev/null", O_WRONLY);

	attempt("descriptor 99", 99);
	attempt("descriptor -1", -1);
	attempt("write only", out);
	if (write(1, (void *)16, 8) != -1 || errno != EFAULT)
		errx(1, "a bad buffer was written");
	printf("badread: bad buffer: %s\n", strerror(errno));
	return (0);
}
