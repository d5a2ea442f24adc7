/* Time spent waiting for locks, measured only while it is traced (FreeBSD sys/sys/lockstat.h). */
#ifndef SYS_LOCKSTAT_H
#define SYS_LOCKSTAT_H

#include "sys/sdt.h"
#include "sys/time.h"

SDT_PROVIDER_DECLARE(lockstat);

extern volatile bool lockstat_enabled; /* a probe of the provider is on */
uint64_t lockstat_nsecs(uint64_t since); /* 0 if `since` is 0: it was not traced then */

#define LOCKSTAT_TIME(since) TRACED(TRACED_TEST8(lockstat_enabled), (since) = nanouptime();)

uint64_t nanouptime(void);

#endif
