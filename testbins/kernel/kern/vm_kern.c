/* Memory for the kernel, by the page (FreeBSD sys/vm/vm_kern.c). */
#include "sys/systm.h"
#include "sys/vm.h"

struct pmap kernel_pmap;

/* Returns NULL if no run of free pages is that long. */
void *
kmem_malloc(size_t size)
{
	paddr_t pa = vm_page_alloc_contig(roundup2(size, PAGE_SIZE) >> PAGE_SHIFT);

	if (pa == 0)
		return (NULL);
	PHYS_TO_VM_PAGE(pa)->size = size;
	return (PHYS_TO_DMAP(pa));
}

void
kmem_free(void *addr, size_t size)
{
	vm_page_free_contig(DMAP_TO_PHYS(addr), roundup2(size, PAGE_SIZE) >> PAGE_SHIFT);
}
