/* Time. */
#ifndef SYS_TIME_H
#define SYS_TIME_H

#include "sys/types.h"

#define BOOTTIME 1700000000 /* when the machine starts, in seconds since 1970: the emulator's walltimestamp begins there too */

struct timespec {
	int64_t tv_sec;
	int64_t tv_nsec;
};

struct timeval {
	int64_t tv_sec;
	int64_t tv_usec;
};

struct itimerval {
	struct timeval it_interval;
	struct timeval it_value;
};

struct rusage { /* the fields with a meaning here */
	struct timeval ru_utime;
	struct timeval ru_stime;
	int64_t ru_nsyscalls;
};

#define CLOCK_REALTIME 0
#define CLOCK_MONOTONIC 4
#define ITIMER_REAL 0
#define RUSAGE_SELF 0
#define RUSAGE_CHILDREN (-1)
#define RB_POWEROFF 0x4000 /* reboot(2) */

#endif
