/* mv from to: to may be a directory */
#include "libc.h"

int
main(int argc, char *argv[])
{
	char path[512];
	const char *to;
	struct stat st;

	if (argc != 3)
		errx(1, "usage: mv from to");
	to = argv[2];
	if (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(path, sizeof(path), "%s/%s", to, basename(argv[1]));
		to = path;
	}
	if (rename(argv[1], to) != 0)
		err(1, "rename %s to %s", argv[1], to);
	return (0);
}
