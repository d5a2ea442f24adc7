/* Page tables: sv39 (FreeBSD sys/riscv/riscv/pmap.c). Three levels of 512 entries. */
#include "riscvreg.h"
#include "sys/errno.h"
#include "sys/machine_interface.h"

typedef uint64_t pt_entry_t;

#define PTE_V 0x01
#define PTE_R 0x02
#define PTE_W 0x04
#define PTE_X 0x08
#define PTE_U 0x10
#define PTE_G 0x20
#define PTE_A 0x40
#define PTE_D 0x80
#define PTE_LEAF (PTE_R | PTE_W | PTE_X)
#define PTE_KERNEL (PTE_V | PTE_R | PTE_G | PTE_A | PTE_D)
#define PTE_TO_PHYS(pte) (((pte) >> 10 & 0xfffffffffff) << PAGE_SHIFT)
#define PHYS_TO_PTE(pa) ((pa) >> PAGE_SHIFT << 10)

#define NPTEPG 512
#define L1_SIZE 0x40000000UL
#define L2_SIZE 0x200000UL
#define KERNEL_SLOT ((KERNBASE >> 30) & (NPTEPG - 1)) /* the GiB of the kernel: 256 */

static inline unsigned
pmap_index(vaddr_t va, int level) /* level 2 is the root */
{
	return (va >> (PAGE_SHIFT + 9 * level) & (NPTEPG - 1));
}

/* The entry that maps the page at va; NULL if there is no table for it and none is to be made, or no memory. */
static pt_entry_t *
pmap_pte(struct pmap *pmap, vaddr_t va, bool make)
{
	pt_entry_t *table = PHYS_TO_DMAP(pmap->pm_root);
	paddr_t page;

	for (int level = 2; level > 0; level--) {
		pt_entry_t *entry = &table[pmap_index(va, level)];

		if (!(*entry & PTE_V)) {
			if (!make || (page = vm_page_alloc()) == 0)
				return (NULL);
			*entry = PHYS_TO_PTE(page) | PTE_V;
		}
		table = PHYS_TO_DMAP(PTE_TO_PHYS(*entry));
	}
	return (&table[pmap_index(va, 0)]);
}

static void
pmap_invalidate_page(vaddr_t va)
{
	__asm__ volatile("sfence.vma %0" ::"r"(va) : "memory");
}

void
pmap_bootstrap(unsigned long ram_size)
{
	paddr_t text = DMAP_TO_PHYS(kernel_text_start), data = DMAP_TO_PHYS(kernel_text_end);
	paddr_t root = vm_page_alloc(), middle = vm_page_alloc();
	pt_entry_t *l2 = PHYS_TO_DMAP(middle), *l3;

	((pt_entry_t *)PHYS_TO_DMAP(root))[KERNEL_SLOT] = PHYS_TO_PTE(middle) | PTE_V;
	for (paddr_t block = 0; block < ram_size; block += L2_SIZE) {
		pt_entry_t *entry = &l2[pmap_index(block, 1)];

		if (block >= text && block < data) {
			*entry = PHYS_TO_PTE(block) | PTE_KERNEL | PTE_X;
			continue;
		}
		/* Small pages, for each may become a guard. */
		paddr_t page = vm_page_alloc();
		*entry = PHYS_TO_PTE(page) | PTE_V;
		l3 = PHYS_TO_DMAP(page);
		for (paddr_t pa = block; pa < block + L2_SIZE && pa < ram_size; pa += PAGE_SIZE)
			l3[pmap_index(pa, 0)] = PHYS_TO_PTE(pa) | PTE_KERNEL | PTE_W;
	}
	kernel_pmap.pm_root = root;
	pmap_activate(&kernel_pmap);
}

int
pmap_pinit(struct pmap *pmap)
{
	paddr_t root = vm_page_alloc();

	if (root == 0)
		return (ENOMEM);
	((pt_entry_t *)PHYS_TO_DMAP(root))[KERNEL_SLOT] = ((pt_entry_t *)PHYS_TO_DMAP(kernel_pmap.pm_root))[KERNEL_SLOT];
	pmap->pm_root = root;
	pmap->pm_resident = 0;
	return (0);
}

/* Frees a table of user entries and all below it. */
static void
pmap_free_table(struct pmap *pmap, paddr_t page, int level)
{
	pt_entry_t *table = PHYS_TO_DMAP(page);

	for (int i = 0; i < (level == 2 ? NPTEPG / 2 : NPTEPG); i++) {
		if (!(table[i] & PTE_V))
			continue;
		if (level > 0)
			pmap_free_table(pmap, PTE_TO_PHYS(table[i]), level - 1);
		else {
			vm_page_unref(PTE_TO_PHYS(table[i]));
			pmap->pm_resident--;
		}
	}
	vm_page_unref(page);
}

void
pmap_release(struct pmap *pmap)
{
	pmap_free_table(pmap, pmap->pm_root, 2);
	pmap->pm_root = 0;
}

int
pmap_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot)
{
	pt_entry_t *pte = pmap_pte(pmap, va, true);

	if (pte == NULL)
		return (ENOMEM);
	if (!(*pte & PTE_V))
		pmap->pm_resident++;
	*pte = PHYS_TO_PTE(pa) | PTE_V | PTE_U | PTE_A | PTE_D | PTE_R;
	if (prot & PROT_WRITE)
		*pte |= PTE_W;
	if (prot & PROT_EXEC) {
		*pte |= PTE_X;
		__asm__ volatile("fence.i" ::: "memory"); /* the page may have been written as data just now */
	}
	pmap_invalidate_page(va);
	return (0);
}

paddr_t
pmap_extract(struct pmap *pmap, vaddr_t va, int *prot)
{
	pt_entry_t *pte = pmap_pte(pmap, va, false);

	if (pte == NULL || !(*pte & PTE_V))
		return (0);
	if (prot != NULL)
		*prot = PROT_READ | (*pte & PTE_W ? PROT_WRITE : 0) | (*pte & PTE_X ? PROT_EXEC : 0);
	return (PTE_TO_PHYS(*pte));
}

void
pmap_remove(struct pmap *pmap, vaddr_t va)
{
	pt_entry_t *pte = pmap_pte(pmap, va, false);

	if (pte == NULL || !(*pte & PTE_V))
		return;
	*pte = 0;
	pmap->pm_resident--;
	pmap_invalidate_page(va);
}

void
pmap_activate(struct pmap *pmap)
{
	if (pcpu0.pc_curpmap == pmap)
		return;
	pcpu0.pc_curpmap = pmap;
	csr_write(satp, (uint64_t)SATP_MODE_SV39 << 60 | pmap->pm_root >> PAGE_SHIFT);
	__asm__ volatile("sfence.vma" ::: "memory");
}

void
pmap_guard(vaddr_t va)
{
	*pmap_pte(&kernel_pmap, va, false) = 0;
	pmap_invalidate_page(va);
}

void
pmap_kprotect(vaddr_t va, size_t size, int prot)
{
	for (vaddr_t end = va + size; va < end; va += PAGE_SIZE) {
		pt_entry_t *pte = pmap_pte(&kernel_pmap, va, false);

		*pte = (*pte & ~(PTE_W | PTE_X)) | (prot & PROT_WRITE ? PTE_W : 0) | (prot & PROT_EXEC ? PTE_X : 0);
		pmap_invalidate_page(va);
	}
	if (prot & PROT_EXEC)
		__asm__ volatile("fence.i" ::: "memory");
}
