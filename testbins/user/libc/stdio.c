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

const char *
strerror(int error)
{
	static const char *const messages[] = {
		[0] = "No error: 0", [EPERM] = "Operation not permitted", [ENOENT] = "No such file or directory",
		[ESRCH] = "No such process", [EINTR] = "Interrupted system call", [EIO] = "Input/output error",
		[ENXIO] = "Device not configured", [E2BIG] = "Argument list too long", [ENOEXEC] = "Exec format error",
		[EBADF] = "Bad file descriptor", [ECHILD] = "No child processes", [ENOMEM] = "Cannot allocate memory",
		[EACCES] = "Permission denied", [EFAULT] = "Bad address", [EBUSY] = "Device busy", [EEXIST] = "File exists",
		[EXDEV] = "Cross-device link", [ENODEV] = "Operation not supported by device", [ENOTDIR] = "Not a directory",
		[EISDIR] = "Is a directory", [EINVAL] = "Invalid argument", [ENFILE] = "Too many open files in system",
		[EMFILE] = "Too many open files", [ENOTTY] = "Inappropriate ioctl for device", [ETXTBSY] = "Text file busy",
		[EFBIG] = "File too large", [ENOSPC] = "No space left on device", [ESPIPE] = "Illegal seek",
		[EROFS] = "Read-only file system", [EMLINK] = "Too many links", [EPIPE] = "Broken pipe",
		[EAGAIN] = "Resource temporarily unavailable", [EOPNOTSUPP] = "Operation not supported",
		[ENAMETOOLONG] = "File name too long", [ENOTEMPTY] = "Directory not empty", [ENOSYS] = "Function not implemented",
	};
	static char unknown[32];

	if (error >= 0 && error < (int)nitems(messages) && messages[error] != NULL)
		return (messages[error]);
	snprintf(unknown, sizeof(unknown), "Unknown error: %d", error);
	return (unknown);
}
