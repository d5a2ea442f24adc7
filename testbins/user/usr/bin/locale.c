/* locale: what the environment says of languages and formats. */
#include "libc.h"

static const char *
getenv(const char *name)
{
	size_t n = strlen(name);

	for (char **env = environ; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return (*env + n + 1);
	return ("");
}

int
main(void)
{
	static const char *const categories[] = { "LC_CTYPE", "LC_COLLATE", "LC_TIME", "LC_NUMERIC", "LC_MONETARY", "LC_MESSAGES" };
	const char *all = getenv("LC_ALL"), *lang = getenv("LANG");

	printf("LANG=%s\n", lang);
	for (size_t i = 0; i < nitems(categories); i++) {
		const char *own = getenv(categories[i]);

		if (*all == '\0' && *own != '\0')
			printf("%s=%s\n", categories[i], own);
		else /* quotes say that the value is implied */
			printf("%s=\"%s\"\n", categories[i], *all != '\0' ? all : *lang != '\0' ? lang : "C");
	}
	printf("LC_ALL=%s\n", all);
	return (0);
}
