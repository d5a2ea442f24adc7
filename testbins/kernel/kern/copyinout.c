/*
 * Between the kernel and user memory. The kernel reaches user pages through its own map of all
 * memory, so a bad address is found in the page table, not by a fault.
 */
#include "sys/systm.h"
#include "sys/vm.h"

/* Returns the kernel's address of a user address, and makes its page present and perhaps writable; NULL: not possible. */
static char *
uaddr_to_kaddr(vaddr_t uaddr, int access)
{
	struct vmspace *vm = curproc->p_vmspace;
	paddr_t pa;
	int prot = 0;

	if (vm == NULL || uaddr >= USER_END)
		return (NULL);
	pa = pmap_extract(&vm->vm_pmap, rounddown2(uaddr, PAGE_SIZE), &prot);
	if (pa == 0 || (prot & access) != access) {
		if (vm_fault(vm, uaddr, access) != 0)
			return (NULL);
		pa = pmap_extract(&vm->vm_pmap, rounddown2(uaddr, PAGE_SIZE), NULL);
	}
	return ((char *)PHYS_TO_DMAP(pa) + (uaddr & PAGE_MASK));
}

int
copyin(const void *uaddr, void *kaddr, size_t len)
{
	vaddr_t from = (vaddr_t)uaddr;
	char *to = kaddr, *page;

	while (len > 0) {
		size_t n = MIN(len, PAGE_SIZE - (from & PAGE_MASK));

		if ((page = uaddr_to_kaddr(from, PROT_READ)) == NULL)
			return (EFAULT);
		memcpy(to, page, n);
		from += n, to += n, len -= n;
	}
	return (0);
}

int
copyout(const void *kaddr, void *uaddr, size_t len)
{
	vaddr_t to = (vaddr_t)uaddr;
	const char *from = kaddr;
	char *page;

	while (len > 0) {
		size_t n = MIN(len, PAGE_SIZE - (to & PAGE_MASK));

		if ((page = uaddr_to_kaddr(to, PROT_READ | PROT_WRITE)) == NULL)
			return (EFAULT);
		memcpy(page, from, n);
		from += n, to += n, len -= n;
	}
	return (0);
}

/* A string with its NUL, at most len bytes; *done, if not NULL, is their number. */
int
copyinstr(const void *uaddr, void *kaddr, size_t len, size_t *done)
{
	vaddr_t from = (vaddr_t)uaddr;
	char *to = kaddr, *page = NULL;

	for (size_t i = 0; i < len; i++, from++, page++) {
		if ((i == 0 || (from & PAGE_MASK) == 0) && (page = uaddr_to_kaddr(from, PROT_READ)) == NULL)
			return (EFAULT);
		if ((to[i] = *page) == '\0') {
			if (done != NULL)
				*done = i + 1;
			return (0);
		}
	}
	return (ENAMETOOLONG);
}

int
fuword(const void *uaddr, unsigned long *value)
{
	return (copyin(uaddr, value, sizeof(*value)));
}

int
suword(void *uaddr, unsigned long value)
{
	return (copyout(&value, uaddr, sizeof(value)));
}
