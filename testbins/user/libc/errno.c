/* Where errno is: one word, until a threads library says that each thread has its own (FreeBSD lib/libsys/__error.c). */
#include "libc.h"

static int *
error_unthreaded(void)
{
	static int value;

	return (&value);
}

static int *(*error_selector)(void) = error_unthreaded;

int *
__error(void)
{
	return (error_selector());
}

void
__set_error_selector(int *(*selector)(void))
{
	error_selector = selector;
}
