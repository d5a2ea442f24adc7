/* The kernel's malloc: every block has a type, and types keep books (FreeBSD sys/sys/malloc.h). */
#ifndef SYS_MALLOC_H
#define SYS_MALLOC_H

#include "sys/kernel.h"
#include "sys/types.h"

#define M_NOWAIT 0x0001
#define M_WAITOK 0x0002
#define M_ZERO 0x0100

#define DTMALLOC_PROBE_MALLOC 0
#define DTMALLOC_PROBE_FREE 1
#define DTMALLOC_PROBE_MAX 2

struct malloc_type_stats {
	uint64_t mts_memalloced; /* bytes */
	uint64_t mts_memfreed;
	uint64_t mts_numallocs;
	uint64_t mts_numfrees;
	uint64_t mts_size;	 /* bit n: something of bucket n was allocated */
};

struct malloc_type_internal {
	uint32_t mti_probes[DTMALLOC_PROBE_MAX]; /* probe ids; 0 is none */
	struct malloc_type_stats mti_stats;
};

struct malloc_type {
	struct malloc_type *ks_next;
	const char *ks_shortdesc;
	const char *ks_longdesc;
	struct malloc_type_internal ks_mti;
};

#define MALLOC_DEFINE(type, shortdesc, longdesc)                                                \
	struct malloc_type type[1] = { { .ks_shortdesc = shortdesc, .ks_longdesc = longdesc } }; \
	SYSINIT(type##_init, SI_SUB_KMEM, SI_ORDER_THIRD, malloc_init, type)
#ifdef KLD_MODULE /* the type goes with its file */
#include "sys/linker.h"
#undef MALLOC_DEFINE
#define MALLOC_DEFINE(type, shortdesc, longdesc)                                                \
	struct malloc_type type[1] = { { .ks_shortdesc = shortdesc, .ks_longdesc = longdesc } }; \
	SYSINIT(type##_init, SI_SUB_KMEM, SI_ORDER_THIRD, malloc_init, type);                   \
	SYSUNINIT(type##_uninit, SI_SUB_KMEM, SI_ORDER_ANY, malloc_uninit, type)
#endif
#define MALLOC_DECLARE(type) extern struct malloc_type type[1]

MALLOC_DECLARE(M_TEMP);
MALLOC_DECLARE(M_DEVBUF);

extern struct malloc_type *kmemstatistics;
extern bool dtrace_malloc_enabled;

void malloc_init(const void *data);
void malloc_uninit(const void *data);
void *malloc(size_t size, struct malloc_type *type, int flags);
void *realloc(void *addr, size_t size, struct malloc_type *type, int flags);
void free(void *addr, struct malloc_type *type);
char *strdup(const char *string, struct malloc_type *type);

#endif
