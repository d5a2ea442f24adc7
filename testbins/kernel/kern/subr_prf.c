/* Printing on the console (FreeBSD sys/kern/subr_prf.c). The formatting is kvprintf.c's. */
#include "sys/systm.h"

#define LINE 256

struct putchar_arg { /* a line on its way to the console */
	char buffer[LINE];
	size_t length;
};

static void
putchar(int c, void *arg)
{
	struct putchar_arg *ap = arg;

	ap->buffer[ap->length++] = c;
	if (ap->length == LINE) {
		cnputs(ap->buffer, ap->length);
		ap->length = 0;
	}
}

int
printf(const char *format, ...)
{
	struct putchar_arg pca = { .length = 0 };
	va_list ap;
	int retval;

	va_start(ap, format);
	retval = kvprintf(format, putchar, &pca, ap);
	va_end(ap);
	cnputs(pca.buffer, pca.length);
	return (retval);
}

void
cnputs(const char *s, size_t n)
{
	if (n > 0)
		gate_console_write(s, n);
}

size_t
cngets(char *s, size_t n)
{
	return (gate_console_read(s, n));
}
