/* Output through one buffer, input by lines, and error messages. */
#include "libc.h"

int kvprintf(const char *format, void (*func)(int, void *), void *arg, va_list ap);
int vsnprintf(char *to, size_t size, const char *format, va_list ap);

static char buffer[BUFSIZ];
static size_t length;

void
fflush(void)
{
	if (length > 0)
		write(1, buffer, length);
	length = 0;
}

void
putchar(int c)
{
	if (length == BUFSIZ)
		fflush();
	buffer[length++] = c;
}

void
fputs(const char *s)
{
	while (*s != '\0')
		putchar(*s++);
}

int
puts(const char *s)
{
	fputs(s);
	putchar('\n');
	return (0);
}

static void
printf_putchar(int c, void *unused __unused)
{
	putchar(c);
}

int
printf(const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = kvprintf(format, printf_putchar, NULL, ap);
	va_end(ap);
	return (n);
}

char *
readline(struct reader *in, char *line, size_t size)
{
	size_t n = 0;

	for (;;) {
		if (in->next == in->end) {
			ssize_t got = read(in->fd, in->buffer, sizeof(in->buffer));

			if (got <= 0) {
				line[n] = '\0';
				return (n > 0 ? line : NULL);
			}
			in->next = 0;
			in->end = got;
		}
		char c = in->buffer[in->next++];
		if (c == '\n') {
			line[n] = '\0';
			return (line);
		}
		if (n < size - 1)
			line[n++] = c;
	}
}

/* One write for the whole message, after what was printed before it. */
static void
vwarn(int error, const char *format, va_list ap)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "%s: ", getprogname());

	n += vsnprintf(text + n, sizeof(text) - n, format, ap);
	if (error != 0)
		n += snprintf(text + n, sizeof(text) - n, ": %s", strerror(error));
	n += snprintf(text + n, sizeof(text) - n, "\n");
	fflush();
	write(2, text, n);
}

void
warn(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarn(errno, format, ap);
	va_end(ap);
}

void
warnx(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarn(0, format, ap);
	va_end(ap);
}

void
err(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarn(errno, format, ap);
	exit(status);
}

void
errx(int status, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vwarn(0, format, ap);
	exit(status);
}
