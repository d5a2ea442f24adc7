/* pwd */
#include "libc.h"

int
main(void)
{
	char path[1024];

	if (__getcwd(path, sizeof(path)) != 0)
		err(1, ".");
	return (puts(path));
}
