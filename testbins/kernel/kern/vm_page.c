/* Physical pages (FreeBSD sys/vm/vm_page.c). The pages no one else needs are on a list; each has a reference count. */
#include "sys/systm.h"
#include "sys/vm.h"

struct vm_page *vm_page_array;
unsigned long vm_page_count, vm_page_free_count;

static TAILQ_HEAD(, vm_page) vm_page_queue_free = TAILQ_HEAD_INITIALIZER(vm_page_queue_free);
static struct mtx vm_page_queue_free_mtx = MTX_INITIALIZER("vm page free queue", MTX_DEF);

struct vm_page *
PHYS_TO_VM_PAGE(paddr_t pa)
{
	KASSERT(pa >> PAGE_SHIFT < vm_page_count, ("no page at %#lx", pa));
	return (&vm_page_array[pa >> PAGE_SHIFT]);
}

static paddr_t
VM_PAGE_TO_PHYS(struct vm_page *m)
{
	return ((paddr_t)(m - vm_page_array) << PAGE_SHIFT);
}

static void
vm_page_add_free(struct vm_page *m)
{
	m->ref_count = 0;
	m->slab = NULL;
	m->size = 0;
	TAILQ_INSERT_HEAD(&vm_page_queue_free, m, plinks);
	vm_page_free_count++;
}

/* The array of pages follows the kernel; what follows the array and is not the initrd is free. */
void
vm_page_startup(unsigned long ram_size, paddr_t initrd, unsigned long initrd_size)
{
	paddr_t start = DMAP_TO_PHYS(kernel_end), initrd_start = rounddown2(initrd, PAGE_SIZE);
	paddr_t initrd_end = roundup2(initrd + initrd_size, PAGE_SIZE), end;
	struct vm_page *m;
	uint64_t size;

	vm_page_count = ram_size >> PAGE_SHIFT;
	size = roundup2(vm_page_count * sizeof(struct vm_page), PAGE_SIZE);
	if (start + size > initrd_start && start < initrd_end)
		start = initrd_end;
	vm_page_array = PHYS_TO_DMAP(start);
	bzero(vm_page_array, size);
	end = start + size;
	/* Backwards, so that low pages are first on the list. */
	m = &vm_page_array[vm_page_count];
	for (paddr_t pa = rounddown2(ram_size, PAGE_SIZE); pa > end;) {
		pa -= PAGE_SIZE;
		m--;
		if (pa < initrd_start || pa >= initrd_end)
			vm_page_add_free(m);
		else
			m->ref_count = 1;
	}
	printf("real memory  = %lu (%lu MB)\n", ram_size, ram_size >> 20);
	printf("avail memory = %lu (%lu MB)\n", vm_page_free_count << PAGE_SHIFT, vm_page_free_count >> (20 - PAGE_SHIFT));
}

/* Gives pages set aside at start-up to the rest. */
void
vm_page_release_range(paddr_t start, uint64_t size)
{
	paddr_t end = roundup2(start + size, PAGE_SIZE);

	for (paddr_t pa = rounddown2(start, PAGE_SIZE); pa < end; pa += PAGE_SIZE)
		if (PHYS_TO_VM_PAGE(pa)->ref_count == 1)
			vm_page_unref(pa);
}

paddr_t
vm_page_alloc_nozero(void)
{
	struct vm_page *m;

	mtx_lock(&vm_page_queue_free_mtx);
	m = TAILQ_FIRST(&vm_page_queue_free);
	if (m != NULL) {
		TAILQ_REMOVE(&vm_page_queue_free, m, plinks);
		vm_page_free_count--;
		m->ref_count = 1;
		m->icache_clean = false;
	}
	mtx_unlock(&vm_page_queue_free_mtx);
	return (m != NULL ? VM_PAGE_TO_PHYS(m) : 0);
}

paddr_t
vm_page_alloc(void)
{
	paddr_t pa = vm_page_alloc_nozero();

	if (pa != 0)
		bzero(PHYS_TO_DMAP(pa), PAGE_SIZE);
	return (pa);
}

/* n pages side by side, contents unknown; 0 if there are none. From the top, away from the single ones. */
paddr_t
vm_page_alloc_contig(unsigned n)
{
	unsigned found = 0;

	mtx_lock(&vm_page_queue_free_mtx);
	for (uint64_t i = vm_page_count; i-- > DMAP_TO_PHYS(kernel_end) >> PAGE_SHIFT;) {
		struct vm_page *m = &vm_page_array[i];

		found = m->ref_count == 0 && m->plinks.tqe_prev != NULL ? found + 1 : 0;
		if (found < n)
			continue;
		for (unsigned j = 0; j < n; j++) {
			TAILQ_REMOVE(&vm_page_queue_free, &m[j], plinks);
			m[j].plinks.tqe_prev = NULL;
			m[j].ref_count = 1;
		}
		vm_page_free_count -= n;
		mtx_unlock(&vm_page_queue_free_mtx);
		return (VM_PAGE_TO_PHYS(m));
	}
	mtx_unlock(&vm_page_queue_free_mtx);
	return (0);
}

void
vm_page_free_contig(paddr_t pa, unsigned n)
{
	for (; n > 0; n--, pa += PAGE_SIZE)
		vm_page_unref(pa);
}

void
vm_page_ref(paddr_t pa)
{
	PHYS_TO_VM_PAGE(pa)->ref_count++;
}

static void
vm_page_free(struct vm_page *m)
{
	mtx_lock(&vm_page_queue_free_mtx);
	vm_page_add_free(m);
	mtx_unlock(&vm_page_queue_free_mtx);
}

void
vm_page_unref(paddr_t pa)
{
	struct vm_page *m = PHYS_TO_VM_PAGE(pa);

	KASSERT(m->ref_count > 0, ("page %#lx freed twice", pa));
	if (m->ref_count == 1)
		vm_page_free(m);
	else
		m->ref_count--;
}

/* The page was written to through the kernel's map. */
void
vm_page_dirtied(paddr_t pa)
{
	PHYS_TO_VM_PAGE(pa)->icache_clean = false;
}

/* Before a page is executed for the first time since it was written to, old instructions at its address must be forgotten. */
int
vm_page_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot)
{
	struct vm_page *m = PHYS_TO_VM_PAGE(pa);

	if (prot & PROT_EXEC && !m->icache_clean) {
		gate_icache_sync(PHYS_TO_DMAP(pa), PAGE_SIZE);
		m->icache_clean = true;
	}
	if (prot & PROT_WRITE)
		m->icache_clean = false;
	return (pmap_enter(pmap, va, pa, prot));
}

void
pmap_copy_page(paddr_t from, paddr_t to)
{
	memcpy(PHYS_TO_DMAP(to), PHYS_TO_DMAP(from), PAGE_SIZE);
}
