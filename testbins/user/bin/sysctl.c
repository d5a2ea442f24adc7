/* sysctl name[=value] ...: the kernel's integers. */
#include "libc.h"

/* Shows a value, or sets it and shows what it was and is. */
static int
sysctl(const char *name, size_t size, const char *new)
{
	int old, value = new != NULL ? atol(new) : 0;
	size_t length = sizeof(old);

	if (__sysctlbyname(name, size, &old, &length, new != NULL ? &value : NULL, sizeof(value)) != 0)
		return (-1);
	if (new != NULL)
		printf("%.*s: %d -> %d\n", (int)size, name, old, value);
	else
		printf("%.*s: %d\n", (int)size, name, old);
	return (0);
}

int
main(int argc, char *argv[])
{
	int status = 0;

	if (argc < 2)
		errx(1, "usage: sysctl name[=value] ...");
	for (int i = 1; i < argc; i++) {
		const char *mark = strchr(argv[i], '=');

		if (sysctl(argv[i], mark != NULL ? (size_t)(mark - argv[i]) : strlen(argv[i]), mark != NULL ? mark + 1 : NULL) != 0) {
			warn("%s", argv[i]);
			status = 1;
		}
	}
	return (status);
}
