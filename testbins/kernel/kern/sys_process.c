/*
 * Reaching into a process's memory from outside (FreeBSD sys/kern/sys_process.c): the emulator has the kernel run these, and writes to
 * the page itself.
 */
#include "sys/systm.h"
#include "sys/vm.h"

paddr_t proc_rwmem_page(struct vmspace *vm, vaddr_t va);
paddr_t fasttrap_scraddr(struct vmspace *vm, vaddr_t va);

/* Where the page of va is in memory, once it is this address space's alone; 0: there is none. */
__noinline paddr_t
proc_rwmem_page(struct vmspace *vm, vaddr_t va)
{
	if (vm_fault(vm, va, PROT_READ | VM_PROT_COPY) != 0)
		return (0);
	return (pmap_extract(&vm->vm_pmap, rounddown2(va, PAGE_SIZE), NULL));
}

/* A new page at va where displaced instructions run; 0: there is no memory, or something is there. */
__noinline paddr_t
fasttrap_scraddr(struct vmspace *vm, vaddr_t va)
{
	if (vm_map_insert(vm, va, va + PAGE_SIZE, PROT_READ | PROT_EXEC, 0, NULL, 0, 0) != 0)
		return (0);
	return (proc_rwmem_page(vm, va));
}
