/* Address spaces: what is mapped where, and how a fork shares it (FreeBSD sys/vm/vm_map.c). */
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

static uma_zone_t vmspace_zone, mapentzone;
static paddr_t sharedpage; /* the signal trampoline, the same page in every address space */

static void
vm_map_startup(const void *unused __unused)
{
	vmspace_zone = uma_zcreate("VMSPACE", sizeof(struct vmspace));
	mapentzone = uma_zcreate("MAP ENTRY", sizeof(struct vm_map_entry));
	sharedpage = vm_page_alloc();
	memcpy(PHYS_TO_DMAP(sharedpage), sigcode, esigcode - sigcode);
}
SYSINIT(vm_map_startup, SI_SUB_VM, SI_ORDER_ANY, vm_map_startup, NULL);

struct vmspace *
vmspace_alloc(void)
{
	struct vmspace *vm = uma_zalloc(vmspace_zone, M_WAITOK);

	if (vm == NULL)
		return (NULL);
	bzero(vm, sizeof(*vm));
	TAILQ_INIT(&vm->vm_entries);
	vm->vm_refcnt = 1;
	if (pmap_pinit(&vm->vm_pmap) != 0) {
		uma_zfree(vmspace_zone, vm);
		return (NULL);
	}
	return (vm);
}

void
vm_map_sharedpage(struct vmspace *vm)
{
	if (vm_map_insert(vm, SHAREDPAGE, SHAREDPAGE + PAGE_SIZE, PROT_READ | PROT_EXEC, 0, NULL, 0, 0) != 0)
		return;
	if (vm_page_enter(&vm->vm_pmap, SHAREDPAGE, sharedpage, PROT_READ | PROT_EXEC) == 0)
		vm_page_ref(sharedpage);
}

static void
vm_map_entry_dispose(struct vmspace *vm, struct vm_map_entry *entry)
{
	TAILQ_REMOVE(&vm->vm_entries, entry, links);
	vm->vm_size -= entry->end - entry->start;
	if (entry->vnode != NULL)
		vrele(entry->vnode);
	uma_zfree(mapentzone, entry);
}

/* The pages go with the page tables. */
static void
vmspace_dofree(struct vmspace *vm)
{
	struct vm_map_entry *entry;

	while ((entry = TAILQ_FIRST(&vm->vm_entries)) != NULL)
		vm_map_entry_dispose(vm, entry);
	pmap_release(&vm->vm_pmap);
	uma_zfree(vmspace_zone, vm);
}

void
vmspace_free(struct vmspace *vm)
{
	if (--vm->vm_refcnt == 0)
		vmspace_dofree(vm);
}

/* The process leaves its address space, for a new one or because it ends. */
void
vmspace_exec_release(struct proc *p)
{
	struct vmspace *vm = p->p_vmspace;

	p->p_vmspace = NULL;
	p->p_pmap = &kernel_pmap;
	pmap_activate(&kernel_pmap);
	if (vm != NULL)
		vmspace_free(vm);
}

struct vm_map_entry *
vm_map_lookup_entry(struct vmspace *vm, vaddr_t va)
{
	struct vm_map_entry *entry;

	TAILQ_FOREACH(entry, &vm->vm_entries, links)
		if (va < entry->end)
			return (va >= entry->start ? entry : NULL);
	return (NULL);
}

/* A new entry that overlaps no other: 0, ENOMEM if it would. Takes a reference on vp. */
int
vm_map_insert(struct vmspace *vm, vaddr_t start, vaddr_t end, int prot, int eflags, struct vnode *vp, off_t offset, off_t filesz)
{
	struct vm_map_entry *entry, *next;

	if (start >= end || end > USER_END || (start | end) & PAGE_MASK)
		return (EINVAL);
	TAILQ_FOREACH(next, &vm->vm_entries, links)
		if (start < next->end)
			break;
	if (next != NULL && end > next->start)
		return (ENOMEM);
	if ((entry = uma_zalloc(mapentzone, M_WAITOK)) == NULL)
		return (ENOMEM);
	*entry = (struct vm_map_entry){ .start = start, .end = end, .protection = prot, .eflags = eflags, .vnode = vp, .offset = offset, .filesz = filesz };
	vm->vm_size += end - start;
	if (vp != NULL)
		vref(vp);
	if (next != NULL)
		TAILQ_INSERT_BEFORE(next, entry, links);
	else
		TAILQ_INSERT_TAIL(&vm->vm_entries, entry, links);
	return (0);
}

/* Returns the first gap of that length at or after start; 0 if there is none. */
vaddr_t
vm_map_findspace(struct vmspace *vm, vaddr_t start, size_t length)
{
	struct vm_map_entry *entry;

	TAILQ_FOREACH(entry, &vm->vm_entries, links) {
		if (entry->end <= start)
			continue;
		if (start + length <= entry->start)
			break;
		start = entry->end;
	}
	return (start + length <= USRSTACK - MAXSSIZ ? start : 0);
}

/* Cuts an entry in two at va, if one crosses it. */
static int
vm_map_clip(struct vmspace *vm, vaddr_t va)
{
	struct vm_map_entry *entry = vm_map_lookup_entry(vm, va), *tail, *next;

	if (entry == NULL || entry->start == va)
		return (0);
	if ((tail = uma_zalloc(mapentzone, M_WAITOK)) == NULL)
		return (ENOMEM);
	*tail = *entry;
	tail->start = entry->end = va;
	tail->offset += va - entry->start;
	tail->filesz = MAX(entry->filesz - (off_t)(va - entry->start), 0);
	entry->filesz = MIN(entry->filesz, (off_t)(va - entry->start));
	if (tail->vnode != NULL)
		vref(tail->vnode);
	if ((next = TAILQ_NEXT(entry, links)) != NULL)
		TAILQ_INSERT_BEFORE(next, tail, links);
	else
		TAILQ_INSERT_TAIL(&vm->vm_entries, tail, links);
	return (0);
}

static void
vm_map_remove_pages(struct vmspace *vm, vaddr_t start, vaddr_t end)
{
	paddr_t pa;

	for (; start < end; start += PAGE_SIZE)
		if ((pa = pmap_extract(&vm->vm_pmap, start, NULL)) != 0) {
			pmap_remove(&vm->vm_pmap, start);
			vm_page_unref(pa);
		}
}

int
vm_map_delete(struct vmspace *vm, vaddr_t start, vaddr_t end)
{
	struct vm_map_entry *entry, *next;
	int error;

	if ((error = vm_map_clip(vm, start)) != 0 || (error = vm_map_clip(vm, end)) != 0)
		return (error);
	TAILQ_FOREACH_SAFE(entry, &vm->vm_entries, links, next)
		if (entry->start >= start && entry->end <= end) {
			vm_map_remove_pages(vm, entry->start, entry->end);
			vm_map_entry_dispose(vm, entry);
		}
	return (0);
}

/* Sets new rights. Present pages lose the removed rights at once, and get the added ones at the next fault. */
int
vm_map_protect(struct vmspace *vm, vaddr_t start, vaddr_t end, int prot)
{
	struct vm_map_entry *entry;
	int error, was;
	paddr_t pa;

	if ((error = vm_map_clip(vm, start)) != 0 || (error = vm_map_clip(vm, end)) != 0)
		return (error);
	TAILQ_FOREACH(entry, &vm->vm_entries, links) {
		if (entry->start < start || entry->end > end)
			continue;
		entry->protection = prot;
		for (vaddr_t va = entry->start; va < entry->end; va += PAGE_SIZE) {
			if ((pa = pmap_extract(&vm->vm_pmap, va, &was)) == 0)
				continue;
			if (prot & PROT_READ)
				vm_page_enter(&vm->vm_pmap, va, pa, (prot & ~PROT_WRITE) | (was & prot & PROT_WRITE));
			else {
				pmap_remove(&vm->vm_pmap, va);
				vm_page_unref(pa);
			}
		}
	}
	return (0);
}

/* A fault below the stack, within its limit: the stack grows down to there. */
int
vm_map_growstack(struct vmspace *vm, vaddr_t va)
{
	struct vm_map_entry *entry, *previous = NULL;

	TAILQ_FOREACH(entry, &vm->vm_entries, links) {
		if (entry->eflags & MAP_ENTRY_GROWS_DOWN && va < entry->start && va >= USRSTACK - MAXSSIZ) {
			if (previous != NULL && previous->end > rounddown2(va, PAGE_SIZE))
				return (ENOMEM);
			vm->vm_size += entry->start - rounddown2(va, PAGE_SIZE);
			entry->start = rounddown2(va, PAGE_SIZE);
			return (0);
		}
		previous = entry;
	}
	return (EFAULT);
}

/* Both sides keep the pages; each must copy a page before it writes to it. */
static int
vm_map_copy_entry(struct vmspace *from, struct vmspace *to, struct vm_map_entry *entry)
{
	int prot;
	paddr_t pa;

	for (vaddr_t va = entry->start; va < entry->end; va += PAGE_SIZE) {
		if ((pa = pmap_extract(&from->vm_pmap, va, &prot)) == 0)
			continue;
		if (prot & PROT_WRITE && !(entry->eflags & MAP_ENTRY_SHARED)) {
			prot &= ~PROT_WRITE;
			vm_page_enter(&from->vm_pmap, va, pa, prot);
		}
		if (vm_page_enter(&to->vm_pmap, va, pa, prot) != 0)
			return (ENOMEM);
		vm_page_ref(pa);
	}
	return (0);
}

/* The address space of a forked child; NULL without memory. */
struct vmspace *
vmspace_fork(struct vmspace *from)
{
	struct vmspace *to = vmspace_alloc();
	struct vm_map_entry *entry;

	if (to == NULL)
		return (NULL);
	to->vm_daddr = from->vm_daddr;
	to->vm_break = from->vm_break;
	TAILQ_FOREACH(entry, &from->vm_entries, links)
		if (vm_map_insert(to, entry->start, entry->end, entry->protection, entry->eflags, entry->vnode, entry->offset, entry->filesz) != 0 ||
		    vm_map_copy_entry(from, to, entry) != 0) {
			vmspace_free(to);
			return (NULL);
		}
	return (to);
}
