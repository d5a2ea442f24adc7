/* printenv [name]: the environment, or the value of one variable of it */
#include "libc.h"

int
main(int argc, char *argv[])
{
	size_t length = argc > 1 ? strlen(argv[1]) : 0;

	for (char **env = environ; *env != NULL; env++)
		if (argc < 2)
			printf("%s\n", *env);
		else if (strncmp(*env, argv[1], length) == 0 && (*env)[length] == '=') {
			printf("%s\n", *env + length + 1);
			return (0);
		}
	return (argc > 1);
}
