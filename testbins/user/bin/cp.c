/* cp from to: to may be a directory */
#include "libc.h"

int
main(int argc, char *argv[])
{
	char buffer[BUFSIZ], path[512];
	const char *to;
	struct stat st;
	int in, out;
	ssize_t n;

	if (argc != 3)
		errx(1, "usage: cp from to");
	to = argv[2];
	if (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(path, sizeof(path), "%s/%s", to, basename(argv[1]));
		to = path;
	}
	if ((in = open(argv[1], O_RDONLY)) < 0 || fstat(in, &st) != 0)
		err(1, "%s", argv[1]);
	if (S_ISDIR(st.st_mode))
		errx(1, "%s is a directory (not copied).", argv[1]);
	if ((out = open(to, O_WRONLY | O_CREAT | O_TRUNC, st.st_mode & 0777)) < 0)
		err(1, "%s", to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, n) != n)
			err(1, "%s", to);
	if (n < 0)
		err(1, "%s", argv[1]);
	return (0);
}
