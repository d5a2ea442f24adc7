/* malloc with types and statistics (FreeBSD sys/kern/kern_malloc.c). */
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/traced.h"
#include "sys/vm.h"

/* Sizes up to a page are rounded up to one of these, each a zone; larger ones are pages. */
static struct kmemzone {
	size_t kz_size;
	const char *kz_name;
	uma_zone_t kz_zone;
} kmemzones[] = {
	{ 16, "malloc-16", NULL },
	{ 32, "malloc-32", NULL },
	{ 64, "malloc-64", NULL },
	{ 128, "malloc-128", NULL },
	{ 256, "malloc-256", NULL },
	{ 384, "malloc-384", NULL },
	{ 512, "malloc-512", NULL },
	{ 1024, "malloc-1024", NULL },
	{ 2048, "malloc-2048", NULL },
	{ 4096, "malloc-4096", NULL },
};
#define KMEM_ZSHIFT 4
#define KMEM_ZMAX PAGE_SIZE
static uint8_t kmemsize[(KMEM_ZMAX >> KMEM_ZSHIFT) + 1]; /* size / 16, rounded up: the zone */

struct malloc_type *kmemstatistics;
bool dtrace_malloc_enabled; /* dtmalloc sets it while a probe of a type is on */

MALLOC_DEFINE(M_TEMP, "temp", "misc temporary data buffers");
MALLOC_DEFINE(M_DEVBUF, "devbuf", "device driver memory");

static void
mallocinit(const void *unused __unused)
{
	unsigned slot = 0;

	for (unsigned zone = 0; zone < nitems(kmemzones); zone++) {
		kmemzones[zone].kz_zone = uma_zcreate(kmemzones[zone].kz_name, kmemzones[zone].kz_size);
		for (; slot <= kmemzones[zone].kz_size >> KMEM_ZSHIFT; slot++)
			kmemsize[slot] = zone;
	}
}
SYSINIT(mallocinit, SI_SUB_KMEM, SI_ORDER_FIRST, mallocinit, NULL);

/* SYSINIT of each MALLOC_DEFINE: the type joins the list. */
void
malloc_init(const void *data)
{
	struct malloc_type *mtp = (struct malloc_type *)data;

	mtp->ks_next = kmemstatistics;
	kmemstatistics = mtp;
}

/* SYSUNINIT of a type in a file that goes: the type leaves the list. */
void
malloc_uninit(const void *data)
{
	struct malloc_type *mtp = (struct malloc_type *)data, **link = &kmemstatistics;
	const struct malloc_type_stats *mtsp = &mtp->ks_mti.mti_stats;

	while (*link != mtp)
		link = &(*link)->ks_next;
	*link = mtp->ks_next;
	if (mtsp->mts_memalloced != mtsp->mts_memfreed)
		printf("Warning: memory type %s leaked memory on destroy (%lu allocations, %lu bytes leaked).\n", mtp->ks_shortdesc,
		    (unsigned long)(mtsp->mts_numallocs - mtsp->mts_numfrees), (unsigned long)(mtsp->mts_memalloced - mtsp->mts_memfreed));
}

static void
malloc_type_probe(struct malloc_type *mtp, int probe, size_t size, int zindx)
{
	struct malloc_type_internal *mtip = &mtp->ks_mti;

	TRACED(TRACED_TEST8(dtrace_malloc_enabled),
	    if (mtip->mti_probes[probe] != 0)
		dtrace_probe(mtip->mti_probes[probe], TRACED_VALUE(mtp), TRACED_VALUE(mtip), TRACED_VALUE(&mtip->mti_stats), size, zindx););
}

static void
malloc_type_zone_allocated(struct malloc_type *mtp, size_t size, int zindx)
{
	struct malloc_type_stats *mtsp = &mtp->ks_mti.mti_stats;

	if (size > 0) {
		mtsp->mts_memalloced += size;
		mtsp->mts_numallocs++;
	}
	if (zindx != -1)
		mtsp->mts_size |= 1 << zindx;
	malloc_type_probe(mtp, DTMALLOC_PROBE_MALLOC, size, zindx);
}

static void
malloc_type_allocated(struct malloc_type *mtp, size_t size)
{
	malloc_type_zone_allocated(mtp, size, -1);
}

static void
malloc_type_freed(struct malloc_type *mtp, size_t size)
{
	struct malloc_type_stats *mtsp = &mtp->ks_mti.mti_stats;

	mtsp->mts_memfreed += size;
	mtsp->mts_numfrees++;
	malloc_type_probe(mtp, DTMALLOC_PROBE_FREE, size, 0);
}

static void *
malloc_large(size_t size, struct malloc_type *mtp, int flags)
{
	void *va = kmem_malloc(size);

	if (va == NULL && flags & M_WAITOK)
		panic("kmem_malloc(%zu): no memory left", size);
	malloc_type_allocated(mtp, va == NULL ? 0 : size);
	return (va);
}

static void
free_large(void *addr, size_t size)
{
	kmem_free(addr, size);
}

/* With M_WAITOK never NULL: nothing is ever given back to wait for, so no memory is the end. */
void *
malloc(size_t size, struct malloc_type *mtp, int flags)
{
	void *va;
	int indx;

	KASSERT((flags & (M_WAITOK | M_NOWAIT)) != 0, ("malloc: neither M_WAITOK nor M_NOWAIT"));
	if (size <= KMEM_ZMAX) {
		indx = kmemsize[(size + 15) >> KMEM_ZSHIFT];
		va = uma_zalloc(kmemzones[indx].kz_zone, flags);
		if (va == NULL && flags & M_WAITOK)
			panic("malloc(%zu): no memory left", size);
		malloc_type_zone_allocated(mtp, va == NULL ? 0 : kmemzones[indx].kz_size, indx);
	} else
		va = malloc_large(size, mtp, flags);
	if (va != NULL && flags & M_ZERO)
		bzero(va, size);
	return (va);
}

/* What malloc gave for it: the size of its bucket, or of its pages. */
static size_t
malloc_usable_size(void *addr)
{
	uma_zone_t zone = uma_item_zone(addr);

	return (zone != NULL ? uma_zone_size(zone) : PHYS_TO_VM_PAGE(DMAP_TO_PHYS(addr))->size);
}

void
free(void *addr, struct malloc_type *mtp)
{
	uma_zone_t zone;
	size_t size;

	if (addr == NULL)
		return;
	zone = uma_item_zone(addr);
	size = malloc_usable_size(addr);
	if (zone != NULL)
		uma_zfree(zone, addr);
	else
		free_large(addr, size);
	malloc_type_freed(mtp, size);
}

void *
realloc(void *addr, size_t size, struct malloc_type *mtp, int flags)
{
	size_t old;
	void *new;

	if (addr == NULL)
		return (malloc(size, mtp, flags));
	old = malloc_usable_size(addr);
	if (size <= old && size > old / 2)
		return (addr);
	if ((new = malloc(size, mtp, flags)) == NULL)
		return (NULL);
	memcpy(new, addr, MIN(size, old));
	free(addr, mtp);
	return (new);
}

char *
strdup(const char *string, struct malloc_type *mtp)
{
	size_t size = strlen(string) + 1;

	return (memcpy(malloc(size, mtp, M_WAITOK), string, size));
}
