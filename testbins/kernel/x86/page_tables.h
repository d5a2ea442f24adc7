/*
 * The pmap of both x86: page tables of as many levels as the file that includes this says. A user address space is what
 * the first entries of its root lead to; the last entry of every root leads to the kernel's tables, which are made once and shared.
 *
 *   LEVELS, ROOT_ENTRIES   of the tables, and of the highest one; the others have NPTEPG entries
 *   USER_ROOT_ENTRIES      those that are the user's
 *   ROOT_RIGHTS            what an entry of the root has besides the address
 *   ROOT_IS_CACHED         the processor reads the root when cr3 is loaded, and not again
 */
#include "sys/errno.h"
#include "sys/machine_interface.h"
#include "cpufunc.h"

#define PG_V 0x001ull  /* valid */
#define PG_RW 0x002ull /* writable */
#define PG_U 0x004ull  /* for user mode */
#define PG_PS 0x080ull /* a large page */
#define PG_NX (1ull << 63)
#define PG_FRAME 0x000ffffffffff000ull

#define NPTEPG 512
#define LARGE_PAGE_SIZE (1ul << 21)
#define LARGE_PAGE_LEVEL 1

typedef uint64_t pt_entry_t;

static inline unsigned int
pmap_index(vaddr_t va, int level)
{
	return va >> (PAGE_SHIFT + 9 * level) & (level == LEVELS - 1 ? ROOT_ENTRIES - 1 : NPTEPG - 1);
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

		if (!(*entry & PG_V)) {
			paddr_t page = create ? vm_page_alloc() : 0;

			if (page == 0)
				return NULL;
			/* The rights are those of the last level. */
			*entry = page | PG_V | (i == LEVELS - 1 ? ROOT_RIGHTS : PG_RW | PG_U);
			if (ROOT_IS_CACHED && i == LEVELS - 1 && pmap == pcpu0.pc_curpmap)
				load_cr3(pmap->pm_root);
		}
		table = PHYS_TO_DMAP(*entry & PG_FRAME);
	}
	return &table[pmap_index(va, level)];
}

static inline void
pmap_invalidate(struct pmap *pmap, vaddr_t va)
{
	if (pmap == pcpu0.pc_curpmap || pmap == &kernel_pmap)
		invlpg(va);
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
		*entry = text ? pa | PG_V | PG_PS : pa | PG_V | PG_RW | PG_NX;
		pa += text ? LARGE_PAGE_SIZE : PAGE_SIZE;
	}
	pmap_activate(&kernel_pmap);
}

int
pmap_pinit(struct pmap *pmap)
{
	const pt_entry_t *kernel_root = PHYS_TO_DMAP(kernel_pmap.pm_root);
	pt_entry_t *root;

	pmap->pm_root = vm_page_alloc();
	if (pmap->pm_root == 0)
		return ENOMEM;
	root = PHYS_TO_DMAP(pmap->pm_root);
	root[ROOT_ENTRIES - 1] = kernel_root[ROOT_ENTRIES - 1];
	pmap->pm_resident = 0;
	return 0;
}

/*
 * Let go of what the first `entries' entries of a table lead to, and of the table.
 */
static void
pmap_release_table(paddr_t pa, int level, int entries)
{
	const pt_entry_t *table = PHYS_TO_DMAP(pa);

	for (int i = 0; i < entries; i++) {
		if (!(table[i] & PG_V))
			continue;
		if (level == 0)
			vm_page_unref(table[i] & PG_FRAME);
		else
			pmap_release_table(table[i] & PG_FRAME, level - 1, NPTEPG);
	}
	vm_page_unref(pa);
}

void
pmap_release(struct pmap *pmap)
{
	pmap_release_table(pmap->pm_root, LEVELS - 1, USER_ROOT_ENTRIES);
	pmap->pm_root = 0;
	pmap->pm_resident = 0;
}

int
pmap_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot)
{
	pt_entry_t *entry = pmap_entry(pmap, va, 0, true);

	if (entry == NULL)
		return ENOMEM;
	if (!(*entry & PG_V))
		pmap->pm_resident++;
	/* PROT_NONE stays mapped, but only for the kernel. */
	*entry = pa | PG_V | (prot != 0 ? PG_U : 0) | (prot & PROT_WRITE ? PG_RW : 0) | (prot & PROT_EXEC ? 0 : PG_NX);
	pmap_invalidate(pmap, va);
	return 0;
}

paddr_t
pmap_extract(struct pmap *pmap, vaddr_t va, int *prot)
{
	const pt_entry_t *entry = pmap_entry(pmap, va, 0, false);

	if (entry == NULL || !(*entry & PG_V))
		return 0;
	if (prot != NULL)
		*prot = !(*entry & PG_U) ? 0
		    : PROT_READ | (*entry & PG_RW ? PROT_WRITE : 0) | (*entry & PG_NX ? 0 : PROT_EXEC);
	return *entry & PG_FRAME;
}

void
pmap_remove(struct pmap *pmap, vaddr_t va)
{
	pt_entry_t *entry = pmap_entry(pmap, va, 0, false);

	if (entry == NULL || !(*entry & PG_V))
		return;
	*entry = 0;
	pmap->pm_resident--;
	pmap_invalidate(pmap, va);
}

void
pmap_activate(struct pmap *pmap)
{
	pcpu0.pc_curpmap = pmap;
	load_cr3(pmap->pm_root);
}

void
pmap_guard(vaddr_t va)
{
	*pmap_entry(&kernel_pmap, va, 0, false) = 0;
	pmap_invalidate(&kernel_pmap, va);
}

void
pmap_kprotect(vaddr_t va, size_t size, int prot)
{
	for (vaddr_t end = va + size; va < end; va += PAGE_SIZE) {
		pt_entry_t *entry = pmap_entry(&kernel_pmap, va, 0, false);

		*entry = (*entry & ~(PG_RW | PG_NX)) | (prot & PROT_WRITE ? PG_RW : 0) | (prot & PROT_EXEC ? 0 : PG_NX);
		pmap_invalidate(&kernel_pmap, va);
	}
}
