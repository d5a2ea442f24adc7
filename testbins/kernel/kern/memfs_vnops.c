/* The memory file system's vnode operations (in the manner of FreeBSD's sys/fs/tmpfs/tmpfs_vnops.c). */
#include "sys/dirent.h"
#include "sys/memfs.h"
#include "sys/systm.h"
#include "sys/vm.h"

#define MEMFS_MAXSIZE 0x10000000

static int
memfs_lookup(struct vop_lookup_args *ap)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(ap->a_dvp);
	struct memfs_dirent *de;

	if (ap->a_cnp->cn_flags & ISDOTDOT)
		*ap->a_vpp = dir->mn_parent->mn_vnode;
	else if ((de = memfs_dir_lookup(dir, ap->a_cnp->cn_nameptr, ap->a_cnp->cn_namelen)) != NULL)
		*ap->a_vpp = de->md_node->mn_vnode;
	else
		return (ENOENT);
	vref(*ap->a_vpp);
	return (0);
}

/* A new file or directory under a name; gives its vnode, referenced. */
static int
memfs_alloc_file(struct vnode *dvp, struct vnode **vpp, struct vattr *vap, struct componentname *cnp)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(dvp), *node;
	int error = memfs_alloc_node(vap->va_type, vap->va_mode, vap->va_type == VDIR ? dir : NULL, &node);

	if (error != 0)
		return (error);
	memfs_dir_attach(dir, node, cnp->cn_nameptr, cnp->cn_namelen);
	*vpp = node->mn_vnode;
	return (0);
}

static int
memfs_create(struct vop_create_args *ap)
{
	return (memfs_alloc_file(ap->a_dvp, ap->a_vpp, ap->a_vap, ap->a_cnp));
}

static int
memfs_mkdir(struct vop_mkdir_args *ap)
{
	return (memfs_alloc_file(ap->a_dvp, ap->a_vpp, ap->a_vap, ap->a_cnp));
}

static int
memfs_remove(struct vop_remove_args *ap)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(ap->a_dvp);

	memfs_dir_detach(dir, memfs_dir_lookup(dir, ap->a_cnp->cn_nameptr, ap->a_cnp->cn_namelen));
	return (0);
}

static int
memfs_rmdir(struct vop_rmdir_args *ap)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(ap->a_dvp), *node = VP_TO_MEMFS_NODE(ap->a_vp);

	if (!TAILQ_EMPTY(&node->mn_dirhead))
		return (ENOTEMPTY);
	if (ap->a_cnp->cn_flags & ISDOTDOT)
		return (EINVAL);
	memfs_dir_detach(dir, memfs_dir_lookup(dir, ap->a_cnp->cn_nameptr, ap->a_cnp->cn_namelen));
	return (0);
}

static int
memfs_link(struct vop_link_args *ap)
{
	memfs_dir_attach(VP_TO_MEMFS_NODE(ap->a_tdvp), VP_TO_MEMFS_NODE(ap->a_vp), ap->a_cnp->cn_nameptr, ap->a_cnp->cn_namelen);
	return (0);
}

static bool
memfs_is_ancestor(struct memfs_node *node, struct memfs_node *of)
{
	for (; of != of->mn_parent; of = of->mn_parent)
		if (of == node)
			return (true);
	return (of == node);
}

/* Nothing in here sleeps, so no lock is needed to keep the four vnodes still. */
static int
memfs_rename(struct vop_rename_args *ap)
{
	struct memfs_node *fdir = VP_TO_MEMFS_NODE(ap->a_fdvp), *tdir = VP_TO_MEMFS_NODE(ap->a_tdvp), *node = VP_TO_MEMFS_NODE(ap->a_fvp);
	struct componentname *fcnp = ap->a_fcnp, *tcnp = ap->a_tcnp;
	struct memfs_dirent *de = memfs_dir_lookup(fdir, fcnp->cn_nameptr, fcnp->cn_namelen);
	bool directory = ap->a_fvp->v_type == VDIR;

	if (de == NULL || tcnp->cn_flags & ISDOTDOT || (tcnp->cn_namelen == 1 && tcnp->cn_nameptr[0] == '.'))
		return (EINVAL);
	if (directory && memfs_is_ancestor(node, tdir))
		return (EINVAL);
	if (ap->a_tvp == ap->a_fvp)
		return (0);
	if (ap->a_tvp != NULL) {
		if ((ap->a_tvp->v_type == VDIR) != directory)
			return (directory ? ENOTDIR : EISDIR);
		if (!TAILQ_EMPTY(&VP_TO_MEMFS_NODE(ap->a_tvp)->mn_dirhead))
			return (ENOTEMPTY);
		memfs_dir_detach(tdir, memfs_dir_lookup(tdir, tcnp->cn_nameptr, tcnp->cn_namelen));
	}
	memfs_dir_attach(tdir, node, tcnp->cn_nameptr, tcnp->cn_namelen);
	memfs_dir_detach(fdir, de);
	return (0);
}

static int
memfs_read(struct vop_read_args *ap)
{
	static const char zeros[256];
	struct memfs_node *node = VP_TO_MEMFS_NODE(ap->a_vp);
	struct uio *uio = ap->a_uio;
	int error = 0;

	while (error == 0 && uio->uio_resid > 0 && uio->uio_offset < node->mn_size) {
		size_t at = uio->uio_offset & PAGE_MASK, n = MIN(PAGE_SIZE - at, (uint64_t)(node->mn_size - uio->uio_offset));
		paddr_t page = memfs_reg_page(node, uio->uio_offset, false);

		error = page != 0 ? uiomove((char *)PHYS_TO_DMAP(page) + at, n, uio) : uiomove((void *)zeros, MIN(n, sizeof(zeros)), uio);
	}
	return (error);
}

static int
memfs_write(struct vop_write_args *ap)
{
	struct memfs_node *node = VP_TO_MEMFS_NODE(ap->a_vp);
	struct uio *uio = ap->a_uio;
	off_t end, size = node->mn_size;
	int error = 0;

	if (ap->a_ioflag & IO_APPEND)
		uio->uio_offset = node->mn_size;
	end = uio->uio_offset + uio->uio_resid;
	if (end > MEMFS_MAXSIZE)
		return (EFBIG);
	if (end > size && (error = memfs_reg_resize(node, end)) != 0)
		return (error);
	while (error == 0 && uio->uio_resid > 0) {
		size_t at = uio->uio_offset & PAGE_MASK;
		paddr_t page = memfs_reg_page(node, uio->uio_offset, true);

		if (page == 0)
			error = ENOSPC;
		else {
			error = uiomove((char *)PHYS_TO_DMAP(page) + at, PAGE_SIZE - at, uio);
			vm_page_dirtied(page);
		}
	}
	node->mn_mtime = nanouptime();
	if (error != 0 && uio->uio_offset < end) /* bytes that were not read are not part of the file */
		memfs_reg_resize(node, MAX(size, uio->uio_offset));
	return (error);
}

static int
memfs_setsize(struct vop_setsize_args *ap)
{
	return (ap->a_size > MEMFS_MAXSIZE ? EFBIG : memfs_reg_resize(VP_TO_MEMFS_NODE(ap->a_vp), ap->a_size));
}

/* The page of a file at offset, referenced. A hole gets one. */
static int
memfs_getpage(struct vop_getpage_args *ap)
{
	struct memfs_node *node = VP_TO_MEMFS_NODE(ap->a_vp);

	if (ap->a_offset >= node->mn_size || (*ap->a_page = memfs_reg_page(node, ap->a_offset, true)) == 0)
		return (EFAULT);
	vm_page_ref(*ap->a_page);
	return (0);
}

static int
memfs_dirent_type(struct vnode *vp)
{
	return (vp->v_type == VDIR ? DT_DIR : vp->v_type == VCHR ? DT_CHR : DT_REG);
}

/* One entry: -1 if it does not fit any more. */
static int
memfs_dir_emit(struct uio *uio, struct memfs_node *node, const char *name, size_t namelen, off_t next)
{
	struct dirent d = { .d_fileno = node->mn_id, .d_off = next, .d_reclen = DIRENT_RECLEN(namelen),
		.d_type = memfs_dirent_type(node->mn_vnode), .d_namlen = namelen };
	int error;

	if (d.d_reclen > uio->uio_resid)
		return (-1);
	memcpy(d.d_name, name, namelen);
	error = uiomove(&d, d.d_reclen, uio);
	uio->uio_offset = next;
	return (error);
}

/* The offset in a directory: 0 ".", 1 "..", then that of an entry is its cookie + 1. */
static int
memfs_readdir(struct vop_readdir_args *ap)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(ap->a_vp);
	struct uio *uio = ap->a_uio;
	size_t resid = uio->uio_resid;
	struct memfs_dirent *de;
	int error = 0;

	*ap->a_eofflag = 0;
	if (uio->uio_offset == 0)
		error = memfs_dir_emit(uio, dir, ".", 1, 1);
	if (error == 0 && uio->uio_offset == 1)
		error = memfs_dir_emit(uio, dir->mn_parent, "..", 2, 2);
	TAILQ_FOREACH(de, &dir->mn_dirhead, md_entries) {
		if (error != 0)
			break;
		if ((off_t)de->md_cookie + 2 > uio->uio_offset)
			error = memfs_dir_emit(uio, de->md_node, de->md_name, de->md_namelen, de->md_cookie + 2);
	}
	*ap->a_eofflag = error == 0;
	if (error == -1)
		error = uio->uio_resid == resid ? EINVAL : 0;
	return (error);
}

static int
memfs_getattr(struct vop_getattr_args *ap)
{
	struct memfs_node *node = VP_TO_MEMFS_NODE(ap->a_vp);

	*ap->a_vap = (struct vattr){ .va_type = ap->a_vp->v_type, .va_mode = node->mn_mode, .va_uid = node->mn_uid, .va_gid = node->mn_gid,
		.va_nlink = node->mn_links, .va_fileid = node->mn_id, .va_size = node->mn_size, .va_mtime = node->mn_mtime,
		.va_rdev = ap->a_vp->v_rdev != NULL ? ap->a_vp->v_rdev->si_unit : 0 };
	return (0);
}

static int
memfs_inactive(struct vop_inactive_args *ap)
{
	struct memfs_node *node = VP_TO_MEMFS_NODE(ap->a_vp);

	if (node->mn_links == (ap->a_vp->v_type == VDIR ? 1 : 0))
		memfs_free_node(node);
	return (0);
}

const struct vop_vector memfs_vnodeop_entries = {
	.vop_lookup = memfs_lookup,
	.vop_create = memfs_create,
	.vop_mkdir = memfs_mkdir,
	.vop_remove = memfs_remove,
	.vop_rmdir = memfs_rmdir,
	.vop_link = memfs_link,
	.vop_rename = memfs_rename,
	.vop_read = memfs_read,
	.vop_write = memfs_write,
	.vop_readdir = memfs_readdir,
	.vop_getattr = memfs_getattr,
	.vop_setsize = memfs_setsize,
	.vop_getpage = memfs_getpage,
	.vop_inactive = memfs_inactive,
};

static int
devfs_read(struct vop_read_args *ap)
{
	struct cdev *dev = ap->a_vp->v_rdev;

	return (dev == NULL ? ENXIO : dev->si_devsw->d_read == NULL ? ENODEV : dev->si_devsw->d_read(dev, ap->a_uio, ap->a_ioflag));
}

static int
devfs_write(struct vop_write_args *ap)
{
	struct cdev *dev = ap->a_vp->v_rdev;

	return (dev == NULL ? ENXIO : dev->si_devsw->d_write == NULL ? ENODEV : dev->si_devsw->d_write(dev, ap->a_uio, ap->a_ioflag));
}

static int
devfs_setsize(struct vop_setsize_args *ap __unused)
{
	return (0); /* open with O_TRUNC: of no meaning for a device */
}

/* A device is a node of the memory file system that reads and writes elsewhere. */
const struct vop_vector devfs_specops = {
	.vop_read = devfs_read,
	.vop_write = devfs_write,
	.vop_setsize = devfs_setsize,
	.vop_getattr = memfs_getattr,
	.vop_inactive = memfs_inactive,
};
