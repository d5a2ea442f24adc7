/*
 * What of the kernel has a name (FreeBSD sys/sys/sysctl.h): integers, strings, and
 * tables that are made when they are asked for. "sysctl.oidfmt.NAME" is the kind of NAME: "I", "A" or "S".
 */
#ifndef SYS_SYSCTL_H
#define SYS_SYSCTL_H

#include "sys/kernel.h"

/* A read under way: what does not fit is counted all the same. */
struct sysctl_req {
	void *oldptr; /* of the user; NULL: only the size is requested */
	size_t oldlen, oldidx;
};
int SYSCTL_OUT(struct sysctl_req *req, const void *data, size_t size);

struct sysctl_oid {
	const char *oid_name;
	int *oid_value;		     /* what a read gives; NULL: 0 */
	int (*oid_handler)(int value); /* called when the value is written; NULL: it is read-only */
	int (*oid_table)(struct sysctl_req *req); /* gives a table instead of an integer */
	const char *oid_string;	     /* or this is its value */
};

#define SYSCTL_ENTRY(symbol, ...)                                          \
	static const struct sysctl_oid sysctl_##symbol = { __VA_ARGS__ };  \
	DATA_SET(sysctl_set, sysctl_##symbol)
#define SYSCTL(symbol, name, value, handler) SYSCTL_ENTRY(symbol, name, value, handler, NULL, NULL)
#define SYSCTL_TABLE(symbol, name, table) SYSCTL_ENTRY(symbol, name, NULL, NULL, table, NULL)
#define SYSCTL_STRING(symbol, name, string) SYSCTL_ENTRY(symbol, name, NULL, NULL, NULL, string)

#endif
