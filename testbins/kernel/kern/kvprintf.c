/* Formatting, for the kernel and for programs (libc is built from this file too). */
#include "sys/systm.h"

struct snprintf_arg {
	char *str;
	size_t remain;
};

/* The digits of n, last first, in buffer; returns how many. */
static int
ksprintn(char *buffer, uint64_t n, unsigned base)
{
	int length = 0;

	do {
		buffer[length++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n != 0);
	return (length);
}

/* %c %d %i %u %x %p %s %%, flags - 0 #, width, * and l, j, z. Returns the number of characters. */
int
kvprintf(const char *format, void (*func)(int, void *), void *arg, va_list ap)
{
	char digits[24];
	int retval = 0;

#define PCHAR(c) (func((c), arg), retval++)
	for (; *format != '\0'; format++) {
		bool left = false, alternate = false, negative = false;
		char pad = ' ';
		const char *s;
		int width = 0, precision = -1, length, size = 0;
		uint64_t n;

		if (*format != '%') {
			PCHAR(*format);
			continue;
		}
		for (;;) {
			format++;
			if (*format == '-')
				left = true;
			else if (*format == '0')
				pad = '0';
			else if (*format == '#')
				alternate = true;
			else
				break;
		}
		if (*format == '*') {
			width = va_arg(ap, int);
			format++;
		}
		while (*format >= '0' && *format <= '9')
			width = width * 10 + *format++ - '0';
		if (*format == '.') {
			format++;
			if (*format == '*') {
				precision = va_arg(ap, int);
				format++;
			} else
				for (precision = 0; *format >= '0' && *format <= '9'; format++)
					precision = precision * 10 + *format - '0';
		}
		for (; *format == 'l' || *format == 'j' || *format == 'z'; format++)
			size = *format == 'j' || size == 1 ? 2 : 1; /* 1: long, 2: intmax_t */
		switch (*format) {
		case 'c':
			PCHAR(va_arg(ap, int));
			continue;
		case 's':
			s = va_arg(ap, const char *);
			if (s == NULL)
				s = "(null)";
			for (length = 0; length != precision && s[length] != '\0'; length++)
				continue;
			for (; !left && width > length; width--)
				PCHAR(' ');
			for (int i = 0; i < length; i++)
				PCHAR(s[i]);
			for (; left && width > length; width--)
				PCHAR(' ');
			continue;
		case 'd':
		case 'i':
			n = size == 2 ? va_arg(ap, int64_t) : size ? va_arg(ap, long) : va_arg(ap, int);
			if ((negative = (int64_t)n < 0))
				n = -n;
			length = ksprintn(digits, n, 10);
			break;
		case 'u':
			n = size == 2 ? va_arg(ap, uint64_t) : size ? va_arg(ap, unsigned long) : va_arg(ap, unsigned);
			length = ksprintn(digits, n, 10);
			break;
		case 'p':
			alternate = true;
			size = 1;
			/* FALLTHROUGH */
		case 'x':
			n = size == 2 ? va_arg(ap, uint64_t) : size ? va_arg(ap, unsigned long) : va_arg(ap, unsigned);
			length = ksprintn(digits, n, 16);
			break;
		case '\0':
			return (retval);
		default:
			PCHAR(*format);
			continue;
		}
		width -= length + negative + 2 * alternate;
		for (; !left && pad == ' ' && width > 0; width--)
			PCHAR(' ');
		if (negative)
			PCHAR('-');
		if (alternate) {
			PCHAR('0');
			PCHAR('x');
		}
		for (; !left && width > 0; width--)
			PCHAR('0');
		while (length > 0)
			PCHAR(digits[--length]);
		for (; left && width > 0; width--)
			PCHAR(' ');
	}
#undef PCHAR
	return (retval);
}

static void
snprintf_func(int c, void *arg)
{
	struct snprintf_arg *ap = arg;

	if (ap->remain > 1) {
		*ap->str++ = c;
		ap->remain--;
	}
}

int
vsnprintf(char *to, size_t size, const char *format, va_list ap)
{
	struct snprintf_arg info = { to, size };
	int retval = kvprintf(format, snprintf_func, &info, ap);

	if (size > 0)
		*info.str = '\0';
	return (retval);
}

int
snprintf(char *to, size_t size, const char *format, ...)
{
	va_list ap;
	int retval;

	va_start(ap, format);
	retval = vsnprintf(to, size, format, ap);
	va_end(ap);
	return (retval);
}
