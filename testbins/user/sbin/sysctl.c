/* sysctl [-n] name[=value] ...: the kernel's integers and strings; -n: without their names. */
#include "libc.h"

static bool no_names;

static bool
is_string(const char *name, size_t size)
{
	char full[96], kind[2];
	size_t length = sizeof(kind);
	int n = snprintf(full, sizeof(full), "sysctl.oidfmt.%.*s", (int)size, name);

	return (__sysctlbyname(full, n, kind, &length, NULL, 0) == 0 && kind[0] == 'A');
}

static int
show_string(const char *name, size_t size)
{
	char value[256];
	size_t length = sizeof(value);

	if (__sysctlbyname(name, size, value, &length, NULL, 0) != 0)
		return (-1);
	if (!no_names)
		printf("%.*s: ", (int)size, name);
	puts(value);
	return (0);
}

/* Shows a value, or sets it and shows what it was and is. */
static int
sysctl(const char *name, size_t size, const char *new)
{
	if (new == NULL && is_string(name, size))
		return (show_string(name, size));

	int old, value = new != NULL ? atol(new) : 0;
	size_t length = sizeof(old);

	if (__sysctlbyname(name, size, &old, &length, new != NULL ? &value : NULL, sizeof(value)) != 0)
		return (-1);
	if (new != NULL)
		printf("%.*s: %d -> %d\n", (int)size, name, old, value);
	else if (no_names)
		printf("%d\n", old);
	else
		printf("%.*s: %d\n", (int)size, name, old);
	return (0);
}

int
main(int argc, char *argv[])
{
	int status = 0, first = 1;

	if (argc > 1 && strcmp(argv[1], "-n") == 0) {
		no_names = true;
		first++;
	}
	if (argc < first + 1)
		errx(1, "usage: sysctl [-n] name[=value] ...");
	for (int i = first; i < argc; i++) {
		const char *mark = strchr(argv[i], '=');

		if (sysctl(argv[i], mark != NULL ? (size_t)(mark - argv[i]) : strlen(argv[i]), mark != NULL ? mark + 1 : NULL) != 0) {
			warn("%s", argv[i]);
			status = 1;
		}
	}
	return (status);
}
