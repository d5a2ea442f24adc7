/* head [-count | -n count] [file] */
#include "libc.h"

int
main(int argc, char *argv[])
{
	static struct reader in;
	char line[BUFSIZ];
	long count = 10;
	int i = 1;

	if (argc > 2 && strcmp(argv[1], "-n") == 0) {
		count = atol(argv[2]);
		i = 3;
	} else if (argc > 1 && argv[1][0] == '-') {
		count = atol(argv[1] + 1);
		i = 2;
	}
	if (i < argc && (in.fd = open(argv[i], O_RDONLY)) < 0)
		err(1, "%s", argv[i]);
	while (count-- > 0 && readline(&in, line, sizeof(line)) != NULL)
		puts(line);
	return (0);
}
