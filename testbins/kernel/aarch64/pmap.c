/*
 * Page tables: 4 KiB granule and 39-bit addresses, so three levels of 512 entries (Arm ARM D8.3). TTBR0 has the root of
 * the current user address space, TTBR1 always that of the kernel.
 */
#include "armreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

#define NPTEPG 512
#define LEVELS 3
#define LARGE_PAGE_LEVEL 1

#define ATTR_NORMAL (ATTR_AF | ATTR_SH_INNER)

typedef uint64_t pt_entry_t;

/* The table of TTBR0 when there is no user: nothing is mapped. */
static pt_entry_t empty_root[NPTEPG] __attribute__((aligned(PAGE_SIZE)));

static inline unsigned int
pmap_index(vaddr_t va, int level)
{
	return va >> (PAGE_SHIFT + 9 * level) & (NPTEPG - 1);
}

/*
 * The entry for va in the table of the given level, 0 being that of the pages. Missing tables are made if `create';
 * NULL if there is none.
 */
static pt_entry_t *
pmap_entry(struct pmap *pmap, vaddr_t va, int level, bool create)
{
	pt_entry_t *table = PHYS_TO_DMAP(pmap->pm_root);

	for (int i = LEVELS - 1; i > level; i--) {
		pt_entry_t *entry = &table[pmap_index(va, i)];

		if (!(*entry & ATTR_VALID)) {
			paddr_t page = create ? vm_page_alloc() : 0;

			if (page == 0)
				return NULL;
			*entry = page | ATTR_TABLE;
		}
		table = PHYS_TO_DMAP(*entry & ATTR_MASK_ADDRESS);
	}
	return &table[pmap_index(va, level)];
}

/*
 * Replace an entry in use as the architecture requires: break, invalidate, make (Arm ARM D8.14).
 */
static void
pmap_update_entry(pt_entry_t *entry, vaddr_t va, pt_entry_t value)
{
	*entry = 0;
	__asm__ volatile("dsb ishst; tlbi vaae1is, %0; dsb ish" ::"r"(va >> PAGE_SHIFT & 0xfffffffffff) : "memory");
	*entry = value;
	__asm__ volatile("dsb ishst; isb" ::: "memory");
}

static void
pmap_load_roots(paddr_t user, paddr_t kernel)
{
	__asm__ volatile("dsb ishst; msr ttbr0_el1, %0; msr ttbr1_el1, %1; isb; tlbi vmalle1; dsb nsh; isb" ::"r"(user),
	    "r"(kernel)
	    : "memory");
}

/*
 * The kernel map: all RAM at KERNBASE, kernel text read and execute in large pages, the rest read and write in small
 * ones, for the guards.
 */
void
pmap_bootstrap(unsigned long ram_size)
{
	paddr_t text_end = roundup2(DMAP_TO_PHYS(kernel_text_end), LARGE_PAGE_SIZE);
	pt_entry_t *entry = NULL;
	paddr_t pa = 0;

	kernel_pmap.pm_root = vm_page_alloc();
	while (pa < ram_size) {
		bool text = pa >= KERNEL_PHYSICAL && pa < text_end;

		/* A table of small pages is filled in one go. */
		entry = pa % LARGE_PAGE_SIZE != 0 ? entry + 1
		    : pmap_entry(&kernel_pmap, pa + KERNBASE, text ? LARGE_PAGE_LEVEL : 0, true);
		if (entry == NULL)
			panic("pmap_bootstrap: no memory for the tables of %lu bytes of RAM", ram_size);
		*entry = pa | ATTR_NORMAL | ATTR_UXN | (text ? ATTR_BLOCK | ATTR_AP_RO : ATTR_PAGE | ATTR_PXN);
		pa += text ? LARGE_PAGE_SIZE : PAGE_SIZE;
	}
	pmap_activate(&kernel_pmap);
}

int
pmap_pinit(struct pmap *pmap)
{
	pmap->pm_root = vm_page_alloc();
	pmap->pm_resident = 0;
	return pmap->pm_root == 0 ? ENOMEM : 0;
}

/*
 * Let go of what a table leads to, and of the table.
 */
static void
pmap_release_table(paddr_t pa, int level)
{
	const pt_entry_t *table = PHYS_TO_DMAP(pa);

	for (int i = 0; i < NPTEPG; i++) {
		if (!(table[i] & ATTR_VALID))
			continue;
		if (level == 0)
			vm_page_unref(table[i] & ATTR_MASK_ADDRESS);
		else
			pmap_release_table(table[i] & ATTR_MASK_ADDRESS, level - 1);
	}
	vm_page_unref(pa);
}

void
pmap_release(struct pmap *pmap)
{
	pmap_release_table(pmap->pm_root, LEVELS - 1);
	pmap->pm_root = 0;
	pmap->pm_resident = 0;
}

/*
 * What was written to a page as data is to be fetched as instructions: the caches do not see to that themselves.
 */
static void
pmap_sync_icache(paddr_t pa)
{
	uint64_t ctr, line;

	__asm__ volatile("mrs %0, ctr_el0" : "=r"(ctr));
	line = 4ul << (ctr >> 16 & 0xf); /* DminLine: log2 of words */
	for (uint64_t offset = 0; offset < PAGE_SIZE; offset += line)
		__asm__ volatile("dc cvau, %0" ::"r"((char *)PHYS_TO_DMAP(pa) + offset) : "memory");
	__asm__ volatile("dsb ish; ic ialluis; dsb ish; isb" ::: "memory");
}

int
pmap_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot)
{
	pt_entry_t *entry = pmap_entry(pmap, va, 0, true);

	if (entry == NULL)
		return ENOMEM;
	if (!(*entry & ATTR_VALID))
		pmap->pm_resident++;
	if (prot & PROT_EXEC)
		pmap_sync_icache(pa);
	/* PROT_NONE stays mapped, but only for the kernel. */
	pmap_update_entry(entry, va, pa | ATTR_PAGE | ATTR_NORMAL | ATTR_NG | ATTR_PXN | (prot != 0 ? ATTR_AP_USER : 0) |
	    (prot & PROT_WRITE ? 0 : ATTR_AP_RO) | (prot & PROT_EXEC ? 0 : ATTR_UXN));
	return 0;
}

paddr_t
pmap_extract(struct pmap *pmap, vaddr_t va, int *prot)
{
	const pt_entry_t *entry = pmap_entry(pmap, va, 0, false);

	if (entry == NULL || !(*entry & ATTR_VALID))
		return 0;
	if (prot != NULL)
		*prot = !(*entry & ATTR_AP_USER) ? 0
		    : PROT_READ | (*entry & ATTR_AP_RO ? 0 : PROT_WRITE) | (*entry & ATTR_UXN ? 0 : PROT_EXEC);
	return *entry & ATTR_MASK_ADDRESS;
}

void
pmap_remove(struct pmap *pmap, vaddr_t va)
{
	pt_entry_t *entry = pmap_entry(pmap, va, 0, false);

	if (entry == NULL || !(*entry & ATTR_VALID))
		return;
	pmap_update_entry(entry, va, 0);
	pmap->pm_resident--;
}

void
pmap_activate(struct pmap *pmap)
{
	pcpu0.pc_curpmap = pmap;
	pmap_load_roots(pmap == &kernel_pmap ? DMAP_TO_PHYS(empty_root) : pmap->pm_root, kernel_pmap.pm_root);
}

void
pmap_guard(vaddr_t va)
{
	pmap_update_entry(pmap_entry(&kernel_pmap, va, 0, false), va, 0);
}

void
pmap_kprotect(vaddr_t va, size_t size, int prot)
{
	for (vaddr_t end = va + size; va < end; va += PAGE_SIZE) {
		pt_entry_t *entry = pmap_entry(&kernel_pmap, va, 0, false);

		pmap_update_entry(entry, va,
		    (*entry & ~(ATTR_AP_RO | ATTR_PXN)) | (prot & PROT_WRITE ? 0 : ATTR_AP_RO) | (prot & PROT_EXEC ? 0 : ATTR_PXN));
	}
}
