/* The last part of a path. */
#include "libc.h"

const char *
basename(const char *path)
{
	const char *base = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			base = path + 1;
	return (base);
}
