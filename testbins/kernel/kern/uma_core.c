/*
 * Zones: items of one size, cut from pages (FreeBSD sys/vm/uma_core.c). A slab is a page; its free
 * items are linked through their first word. Small items share the page with the slab's head, for
 * others the head is an item of the zone of heads.
 */
#include "sys/systm.h"
#include "sys/vm.h"

#define UMA_MAX_INPAGE 512 /* larger items would waste much of a page that has a head in it */
#define UMA_ZONES 32

struct uma_slab {
	TAILQ_ENTRY(uma_slab) us_link;
	struct uma_zone *us_zone;
	void *us_free;	 /* first free item */
	char *us_data;	 /* the page */
	unsigned us_freecount;
};

TAILQ_HEAD(slabhead, uma_slab);

struct uma_zone {
	struct mtx uz_lock;
	const char *uz_name;
	size_t uz_size;
	unsigned uz_ipers;	 /* items in a slab */
	bool uz_offpage;
	struct slabhead uz_part; /* slabs with free items */
	uint64_t uz_allocs, uz_frees;
};

static struct uma_zone zones[UMA_ZONES], *slabzone;
static int nzones;

uma_zone_t
uma_zcreate(const char *name, size_t size)
{
	struct uma_zone *zone;

	KASSERT(nzones < UMA_ZONES, ("uma_zcreate: no zone left for %s", name));
	zone = &zones[nzones++];
	mtx_init(&zone->uz_lock, name, "UMA zone", MTX_DEF);
	zone->uz_name = name;
	zone->uz_size = roundup2(size, 16);
	zone->uz_offpage = zone->uz_size > UMA_MAX_INPAGE;
	zone->uz_ipers = (PAGE_SIZE - (zone->uz_offpage ? 0 : sizeof(struct uma_slab))) / zone->uz_size;
	TAILQ_INIT(&zone->uz_part);
	KASSERT(zone->uz_ipers > 0, ("uma_zcreate: items of %s are larger than a page", name));
	return (zone);
}

static void
uma_startup(const void *unused __unused)
{
	slabzone = uma_zcreate("UMA Slabs", sizeof(struct uma_slab));
}
SYSINIT(uma_startup, SI_SUB_VM, SI_ORDER_SECOND, uma_startup, NULL);

static struct uma_slab *
keg_alloc_slab(uma_zone_t zone)
{
	paddr_t pa = vm_page_alloc_nozero();
	struct uma_slab *slab;
	char *data = PHYS_TO_DMAP(pa);

	if (pa == 0)
		return (NULL);
	slab = zone->uz_offpage ? uma_zalloc(slabzone, 0) : (struct uma_slab *)(data + PAGE_SIZE) - 1;
	if (slab == NULL) {
		vm_page_unref(pa);
		return (NULL);
	}
	slab->us_zone = zone;
	slab->us_data = data;
	slab->us_freecount = zone->uz_ipers;
	slab->us_free = NULL;
	for (unsigned i = zone->uz_ipers; i-- > 0;) {
		void **item = (void **)(data + i * zone->uz_size);

		*item = slab->us_free;
		slab->us_free = item;
	}
	PHYS_TO_VM_PAGE(pa)->slab = slab;
	TAILQ_INSERT_HEAD(&zone->uz_part, slab, us_link);
	return (slab);
}

static void
keg_free_slab(uma_zone_t zone, struct uma_slab *slab)
{
	paddr_t pa = DMAP_TO_PHYS(slab->us_data);

	TAILQ_REMOVE(&zone->uz_part, slab, us_link);
	if (zone->uz_offpage)
		uma_zfree(slabzone, slab);
	PHYS_TO_VM_PAGE(pa)->slab = NULL;
	vm_page_unref(pa);
}

static void *
slab_alloc_item(uma_zone_t zone, struct uma_slab *slab)
{
	void **item = slab->us_free;

	slab->us_free = *item;
	if (--slab->us_freecount == 0)
		TAILQ_REMOVE(&zone->uz_part, slab, us_link);
	return (item);
}

static void
slab_free_item(uma_zone_t zone, struct uma_slab *slab, void *item)
{
	*(void **)item = slab->us_free;
	slab->us_free = item;
	if (slab->us_freecount++ == 0)
		TAILQ_INSERT_HEAD(&zone->uz_part, slab, us_link);
	/* One slab stays, or a zone that goes up and down by one item would do nothing else. */
	if (slab->us_freecount == zone->uz_ipers && TAILQ_NEXT(TAILQ_FIRST(&zone->uz_part), us_link) != NULL)
		keg_free_slab(zone, slab);
}

void *
uma_zalloc(uma_zone_t zone, int flags __unused)
{
	struct uma_slab *slab;
	void *item = NULL;

	mtx_lock(&zone->uz_lock);
	slab = TAILQ_FIRST(&zone->uz_part);
	if (slab == NULL)
		slab = keg_alloc_slab(zone);
	if (slab != NULL) {
		item = slab_alloc_item(zone, slab);
		zone->uz_allocs++;
	}
	mtx_unlock(&zone->uz_lock);
	return (item);
}

void
uma_zfree(uma_zone_t zone, void *item)
{
	struct uma_slab *slab = PHYS_TO_VM_PAGE(DMAP_TO_PHYS(item))->slab;

	KASSERT(slab != NULL && slab->us_zone == zone, ("uma_zfree: %p is not of %s", item, zone->uz_name));
	mtx_lock(&zone->uz_lock);
	slab_free_item(zone, slab, item);
	zone->uz_frees++;
	mtx_unlock(&zone->uz_lock);
}

size_t
uma_zone_size(uma_zone_t zone)
{
	return (zone->uz_size);
}

/* The zone an item of malloc came from; NULL for a block of pages. */
uma_zone_t
uma_item_zone(void *item)
{
	struct uma_slab *slab = PHYS_TO_VM_PAGE(DMAP_TO_PHYS(item))->slab;

	return (slab != NULL ? slab->us_zone : NULL);
}
