/* crash [null | text | call | break]: does what a program must not do (null) */
#include "libc.h"

int
main(int argc, char *argv[])
{
	const char *how = argc > 1 ? argv[1] : "null";
	volatile char *p = (char *)(uintptr_t)(argc > 100 ? argc : 0);

	if (strcmp(how, "null") == 0)
		*p = 1;
	else if (strcmp(how, "text") == 0)
		*(volatile char *)(uintptr_t)main = 1;
	else if (strcmp(how, "call") == 0)
		((void (*)(void))(uintptr_t)p)();
	else if (strcmp(how, "break") == 0)
		__builtin_trap();
	errx(1, "still here after %s", how);
}
