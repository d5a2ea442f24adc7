/* What lockstat needs of the kernel (FreeBSD sys/kern/kern_lockstat.c). The probes are where the locks are. */
#include "sys/lockstat.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(lockstat);

volatile bool lockstat_enabled;

uint64_t
lockstat_nsecs(uint64_t since)
{
	return (since == 0 ? 0 : nanouptime() - since);
}
