/*
 * Reaching into a process's memory from outside (FreeBSD sys/kern/sys_process.c): the emulator has the kernel run these, and writes to
 * the page itself.
 */
#include "sys/systm.h"
#include "sys/vm.h"

paddr_t proc_rwmem_page(struct vmspace *vm, vaddr_t va);
paddr_t fasttrap_scraddr(struct vmspace *vm, vaddr_t va);

/* Returns where the page of va is in memory, after a private copy was made of it; 0 if it is not mapped. */
__noinline paddr_t
proc_rwmem_page(struct vmspace *vm, vaddr_t va)
{
	if (vm_fault(vm, va, PROT_READ | VM_PROT_COPY) != 0)
		return (0);
	return (pmap_extract(&vm->vm_pmap, rounddown2(va, PAGE_SIZE), NULL));
}

/* Maps a new page at va, where displaced instructions run; returns 0 without memory, or if va is mapped. */
__noinline paddr_t
fasttrap_scraddr(struct vmspace *vm, vaddr_t va)
{
	if (vm_map_insert(vm, va, va + PAGE_SIZE, PROT_READ | PROT_EXEC, 0, NULL, 0, 0) != 0)
		return (0);
	return (proc_rwmem_page(vm, va));
}
