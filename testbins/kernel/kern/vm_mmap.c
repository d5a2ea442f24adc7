/* Memory from the system calls' side (FreeBSD sys/vm/vm_mmap.c, vm_unix.c). */
#include "sys/file.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

static int
vm_mmap_vnode(struct thread *td, struct mmap_args *uap, struct vnode **vpp, off_t *filesz)
{
	struct file *fp;
	struct vattr va;
	int error;

	if ((error = fget_read(td, uap->fd, &fp)) != 0)
		return (error);
	if (fp->f_type != DTYPE_VNODE || fp->f_vnode->v_type != VREG)
		error = ENODEV;
	else if (uap->flags & MAP_SHARED && uap->prot & PROT_WRITE && !(fp->f_flag & FWRITE))
		error = EACCES;
	else if ((error = VOP_GETATTR(fp->f_vnode, &va)) == 0) {
		*vpp = fp->f_vnode;
		*filesz = MAX(va.va_size - uap->pos, 0);
	}
	fdrop(fp, td);
	return (error);
}

static int
kern_mmap(struct thread *td, struct mmap_args *uap)
{
	struct vmspace *vm = td->td_proc->p_vmspace;
	size_t length = roundup2(uap->len, PAGE_SIZE);
	vaddr_t addr = (vaddr_t)uap->addr;
	struct vnode *vp = NULL;
	off_t filesz = 0;
	int error, eflags = 0;

	if (length == 0 || length > USER_END || uap->pos & PAGE_MASK || uap->pos < 0)
		return (EINVAL);
	if (!(uap->flags & MAP_ANON)) {
		if ((error = vm_mmap_vnode(td, uap, &vp, &filesz)) != 0)
			return (error);
		if (uap->flags & MAP_SHARED)
			eflags |= MAP_ENTRY_SHARED;
	} else if (uap->flags & MAP_SHARED)
		return (EOPNOTSUPP); /* the processes would need an object to share */
	if (uap->flags & MAP_FIXED) {
		if (addr & PAGE_MASK || addr < USER_BASE || addr > USRSTACK || addr + length > USRSTACK)
			return (EINVAL);
		if ((error = vm_map_delete(vm, addr, addr + length)) != 0)
			return (error);
	} else if ((addr = vm_map_findspace(vm, MAX(rounddown2(addr, PAGE_SIZE), VM_MMAP_BASE), length)) == 0)
		return (ENOMEM);
	if ((error = vm_map_insert(vm, addr, addr + length, uap->prot, eflags, vp, uap->pos, MIN((off_t)length, filesz))) != 0)
		return (error);
	td->td_retval[0] = addr;
	return (0);
}

int
sys_mmap(struct thread *td, struct mmap_args *uap)
{
	return (kern_mmap(td, uap));
}

/* What munmap and mprotect ask of a range. */
static int
vm_range_check(vaddr_t addr, size_t length)
{
	return (addr & PAGE_MASK || addr < USER_BASE || addr + length > USRSTACK || addr + length < addr || length == 0 ? EINVAL : 0);
}

int
sys_munmap(struct thread *td, struct munmap_args *uap)
{
	vaddr_t addr = (vaddr_t)uap->addr;
	int error = vm_range_check(addr, uap->len);

	return (error != 0 ? error : vm_map_delete(td->td_proc->p_vmspace, addr, roundup2(addr + uap->len, PAGE_SIZE)));
}

int
sys_mprotect(struct thread *td, struct mprotect_args *uap)
{
	vaddr_t addr = (vaddr_t)uap->addr;
	int error = vm_range_check(addr, uap->len);

	return (error != 0 ? error : vm_map_protect(td->td_proc->p_vmspace, addr, roundup2(addr + uap->len, PAGE_SIZE), uap->prot));
}

/* break(address): the heap ends there; 0 asks where it ends. */
int
sys_break(struct thread *td, struct break_args *uap)
{
	struct vmspace *vm = td->td_proc->p_vmspace;
	vaddr_t old = roundup2(vm->vm_break, PAGE_SIZE), new = roundup2((vaddr_t)uap->nsize, PAGE_SIZE);
	int error = 0;

	if (uap->nsize != NULL) {
		if ((vaddr_t)uap->nsize < vm->vm_daddr || new > VM_MMAP_BASE)
			return (ENOMEM);
		if (new > old)
			error = vm_map_insert(vm, old, new, PROT_READ | PROT_WRITE, 0, NULL, 0, 0);
		else if (new < old)
			error = vm_map_delete(vm, new, old);
		if (error != 0)
			return (error);
		vm->vm_break = (vaddr_t)uap->nsize;
	}
	td->td_retval[0] = vm->vm_break;
	return (0);
}
