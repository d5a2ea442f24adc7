/* Memory: pages, zones, address spaces (FreeBSD sys/vm). */
#ifndef SYS_VM_H
#define SYS_VM_H

#include "sys/lock.h"
#include "sys/machine_interface.h"
#include "sys/mman.h"
#include "sys/queue.h"
#include "sys/types.h"

struct vnode;
struct uma_slab;

/* ---- physical pages (vm_page.c) ---- */

struct vm_page {
	TAILQ_ENTRY(vm_page) plinks; /* free list */
	uint32_t ref_count;	     /* 0: free */
	bool icache_clean;	     /* not written to since gate_icache_sync() */
	struct uma_slab *slab;	     /* page of a zone: its slab; */
	size_t size;		     /* else the size of a large malloc */
};

extern struct vm_page *vm_page_array;
extern unsigned long vm_page_count, vm_page_free_count;

void vm_page_startup(unsigned long ram_size, paddr_t initrd, unsigned long initrd_size);
struct vm_page *PHYS_TO_VM_PAGE(paddr_t pa);
paddr_t vm_page_alloc_contig(unsigned n);
void vm_page_ref(paddr_t pa);
void vm_page_dirtied(paddr_t pa);
int vm_page_enter(struct pmap *pmap, vaddr_t va, paddr_t pa, int prot); /* pmap_enter, and the instruction cache */
void vm_page_free_contig(paddr_t pa, unsigned n);
void vm_page_release_range(paddr_t start, uint64_t size);
void pmap_copy_page(paddr_t from, paddr_t to);
paddr_t vm_page_alloc_nozero(void); /* contents unknown */
void *kmem_malloc(size_t size);
void kmem_free(void *addr, size_t size);

/* ---- zones of equal items (uma_core.c) ---- */

struct uma_zone;
typedef struct uma_zone *uma_zone_t;

uma_zone_t uma_zcreate(const char *name, size_t size);
void *uma_zalloc(uma_zone_t zone, int flags); /* NULL without memory */
void uma_zfree(uma_zone_t zone, void *item);
size_t uma_zone_size(uma_zone_t zone);
uma_zone_t uma_item_zone(void *item);

/* ---- address spaces (vm_map.c, vm_fault.c) ---- */

struct vm_map_entry {
	TAILQ_ENTRY(vm_map_entry) links; /* by address */
	vaddr_t start, end;
	int protection;
	int eflags;
	struct vnode *vnode; /* contents; NULL: zeros */
	off_t offset;	     /* of start in the vnode */
	off_t filesz;	     /* bytes that come from it, from start on; zeros follow */
};
#define MAP_ENTRY_GROWS_DOWN 0x1
#define MAP_ENTRY_SHARED 0x2 /* writes reach the file */

TAILQ_HEAD(vm_map_entries, vm_map_entry);

struct vmspace {
	struct vm_map_entries vm_entries;
	struct pmap vm_pmap;
	uint64_t vm_size;	/* bytes mapped */
	int vm_refcnt;
	vaddr_t vm_daddr;	/* the heap starts */
	vaddr_t vm_break;	/* and ends */
	uint64_t vm_faults, vm_cow_faults;
};

#define VM_PROT_COPY 0x8 /* of vm_fault, beside PROT_*: make the page the address space's own */

#define VM_MMAP_BASE 0x20000000 /* where mmap starts to look for room */

struct vmspace *vmspace_alloc(void);
struct vmspace *vmspace_fork(struct vmspace *from);
void vmspace_free(struct vmspace *vm);
void vmspace_exec_release(struct proc *p);
struct vm_map_entry *vm_map_lookup_entry(struct vmspace *vm, vaddr_t va);
int vm_map_insert(struct vmspace *vm, vaddr_t start, vaddr_t end, int prot, int eflags, struct vnode *vp, off_t offset, off_t filesz);
vaddr_t vm_map_findspace(struct vmspace *vm, vaddr_t start, size_t length);
int vm_map_delete(struct vmspace *vm, vaddr_t start, vaddr_t end);
int vm_map_protect(struct vmspace *vm, vaddr_t start, vaddr_t end, int prot);
int vm_map_growstack(struct vmspace *vm, vaddr_t va);
void vm_map_sharedpage(struct vmspace *vm);
int vm_fault(struct vmspace *vm, vaddr_t va, int access); /* 0, or the errno; EFAULT: nothing there */

#endif
