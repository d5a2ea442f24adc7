/* date: seconds since 1970 */
#include "libc.h"

int
main(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		err(1, "clock_gettime");
	printf("%jd.%09jd\n", now.tv_sec, now.tv_nsec);
	return (0);
}
