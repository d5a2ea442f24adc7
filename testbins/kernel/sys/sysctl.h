/* Numbers of the kernel's that have a name (FreeBSD sys/sys/sysctl.h): integers only. */
#ifndef SYS_SYSCTL_H
#define SYS_SYSCTL_H

#include "sys/kernel.h"

struct sysctl_oid {
	const char *oid_name;
	int *oid_value;		     /* what a read gives; NULL: 0 */
	int (*oid_handler)(int value); /* is told what is written; NULL: it cannot be */
};

#define SYSCTL(symbol, name, value, handler)                                       \
	static const struct sysctl_oid sysctl_##symbol = { name, value, handler }; \
	DATA_SET(sysctl_set, sysctl_##symbol)

#endif
