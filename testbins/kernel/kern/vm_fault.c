/* Pages come when they are touched (FreeBSD sys/vm/vm_fault.c). */
#include "sys/cpuvar.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

/* The first touch of a page of zeros, or of one only partly in the file. */
static paddr_t
vm_fault_zerofill(struct vm_map_entry *entry, vaddr_t va)
{
	off_t within = va - entry->start;
	paddr_t pa = vm_page_alloc(), source;

	if (pa == 0 || entry->vnode == NULL || within >= entry->filesz)
		return (pa);
	if (VOP_GETPAGE(entry->vnode, entry->offset + within, &source) == 0) {
		memcpy(PHYS_TO_DMAP(pa), PHYS_TO_DMAP(source), MIN(entry->filesz - within, PAGE_SIZE));
		vm_page_unref(source);
	}
	return (pa);
}

/* A page wholly in the file is the file's own, shared: 0 if this is not one. */
static paddr_t
vm_fault_vnode(struct vm_map_entry *entry, vaddr_t va)
{
	off_t within = va - entry->start;
	paddr_t pa;

	if (entry->vnode == NULL || (entry->offset & PAGE_MASK) != 0)
		return (0);
	if (within + PAGE_SIZE > entry->filesz && !(entry->eflags & MAP_ENTRY_SHARED))
		return (0);
	return (VOP_GETPAGE(entry->vnode, entry->offset + within, &pa) == 0 ? pa : 0);
}

/* A write to a page others have too: a copy takes its place. */
static int
vm_fault_cow(struct vmspace *vm, vaddr_t va, paddr_t pa, int prot)
{
	paddr_t copy;

	vm->vm_cow_faults++;
	CPU_STATS_ADD(vminfo, cow_fault, 1);
	if (PHYS_TO_VM_PAGE(pa)->ref_count == 1) /* the others are gone */
		return (vm_page_enter(&vm->vm_pmap, va, pa, prot));
	if ((copy = vm_page_alloc_nozero()) == 0)
		return (ENOMEM);
	pmap_copy_page(pa, copy);
	vm_page_enter(&vm->vm_pmap, va, copy, prot);
	vm_page_unref(pa);
	return (0);
}

static int
vm_fault_enter(struct vmspace *vm, struct vm_map_entry *entry, vaddr_t va, int access)
{
	paddr_t pa = vm_fault_vnode(entry, va);
	int prot = entry->protection, error;

	if (pa == 0) {
		CPU_STATS_ADD(vminfo, zfod, 1);
		pa = vm_fault_zerofill(entry, va);
	} else {
		CPU_STATS_ADD(vminfo, pgfrec, 1); /* in memory already: there is no other storage */
		if (entry->protection & PROT_EXEC)
			CPU_STATS_ADD(vminfo, execpgin, 1);
		if (!(entry->eflags & MAP_ENTRY_SHARED))
			prot &= ~PROT_WRITE;
	}
	if (pa == 0)
		return (ENOMEM);
	if ((error = vm_page_enter(&vm->vm_pmap, va, pa, prot)) != 0) {
		vm_page_unref(pa);
		return (error);
	}
	if (access & PROT_WRITE & ~prot)
		return (vm_fault_cow(vm, va, pa, entry->protection));
	return (0);
}

int
vm_fault(struct vmspace *vm, vaddr_t va, int access)
{
	struct vm_map_entry *entry;
	int prot, error;
	paddr_t pa;

	va = rounddown2(va, PAGE_SIZE);
	vm->vm_faults++;
	CPU_STATS_ADD(vminfo, as_fault, 1);
	entry = vm_map_lookup_entry(vm, va);
	if (entry == NULL) {
		if (vm_map_growstack(vm, va) != 0)
			return (EFAULT);
		entry = vm_map_lookup_entry(vm, va);
	}
	if ((entry->protection & access & ~VM_PROT_COPY) != (access & ~VM_PROT_COPY)) {
		CPU_STATS_ADD(vminfo, prot_fault, 1);
		return (EFAULT);
	}
	pa = pmap_extract(&vm->vm_pmap, va, &prot);
	if (pa == 0 && ((error = vm_fault_enter(vm, entry, va, access & ~VM_PROT_COPY)) != 0 || !(access & VM_PROT_COPY)))
		return (error);
	if (access & VM_PROT_COPY) /* for a debugger: the process's own page, whatever its rights */
		return (vm_fault_cow(vm, va, pmap_extract(&vm->vm_pmap, va, NULL), entry->protection));
	if (access & PROT_WRITE & ~prot)
		return (vm_fault_cow(vm, va, pa, entry->protection));
	return (vm_page_enter(&vm->vm_pmap, va, pa, (entry->protection & ~PROT_WRITE) | (prot & PROT_WRITE)));
}
