/* Open files that are vnodes (FreeBSD sys/kern/vfs_vnops.c). */
#include "sys/file.h"
#include "sys/systm.h"
#include "sys/vnode.h"

static int
vn_open_create(struct nameidata *ndp, int fmode, int cmode)
{
	struct vattr va = { .va_type = VREG, .va_mode = cmode };
	int error;

	if (ndp->ni_vp != NULL)
		return (fmode & O_EXCL ? EEXIST : 0);
	vn_lock(ndp->ni_dvp);
	error = VOP_CREATE(ndp->ni_dvp, &ndp->ni_vp, &ndp->ni_cnd, &va);
	VOP_UNLOCK(ndp->ni_dvp);
	return (error);
}

/* May it be opened so? */
static int
vn_open_vnode(struct vnode *vp, int fmode)
{
	struct vattr va;
	int error = VOP_GETATTR(vp, &va);

	if (error != 0)
		return (error);
	if (vp->v_type == VDIR && fmode & FWRITE)
		return (EISDIR);
	if (fmode & O_DIRECTORY && vp->v_type != VDIR)
		return (ENOTDIR);
	if (fmode & FWRITE && vp->v_textcount > 0)
		return (ETXTBSY);
	if (curproc->p_ucred->cr_uid != 0 && !(va.va_mode & (fmode & FWRITE ? 0002 : 0004)))
		return (EACCES);
	if (fmode & O_TRUNC && vp->v_type == VREG) {
		vn_lock(vp);
		error = VOP_SETSIZE(vp, 0);
		VOP_UNLOCK(vp);
	}
	return (error);
}

/* A device may keep data for each open: its result is stored with the open file. */
static int
vn_open_device(struct vnode *vp, struct file *fp)
{
	struct cdev *dev = vp->v_rdev;
	uintptr_t priv = 0;
	int error;

	if (dev == NULL)
		return (ENXIO);
	if (dev->si_devsw->d_open == NULL || fp == NULL)
		return (0);
	if ((error = dev->si_devsw->d_open(dev, &priv)) == 0) {
		fp->f_data = (void *)priv;
		dev->si_threadcount++;
	}
	return (error);
}

/* *flagp: FREAD and FWRITE with open's other flags. On success ni_vp is referenced. */
int
vn_open(struct nameidata *ndp, int *flagp, int cmode, struct file *fp)
{
	int fmode = *flagp, error;

	if (fmode & O_CREAT) {
		ndp->ni_cnd.cn_nameiop = CREATE;
		ndp->ni_cnd.cn_flags |= WANTPARENT;
	}
	if ((error = namei(ndp)) != 0)
		return (error);
	if (fmode & O_CREAT) {
		error = vn_open_create(ndp, fmode, cmode);
		vrele(ndp->ni_dvp);
	}
	NDFREE_PNBUF(ndp);
	if (error == 0)
		error = vn_open_vnode(ndp->ni_vp, fmode);
	if (error == 0 && ndp->ni_vp->v_type == VCHR)
		error = vn_open_device(ndp->ni_vp, fp);
	if (error != 0 && ndp->ni_vp != NULL)
		vrele(ndp->ni_vp);
	return (error);
}

int
vn_close(struct vnode *vp, int flags __unused, struct thread *td __unused)
{
	vrele(vp);
	return (0);
}

static int
vn_read(struct file *fp, struct uio *uio, struct thread *td)
{
	struct vnode *vp = fp->f_vnode;
	int error;

	if (vp->v_type == VDIR)
		return (EISDIR);
	uio->uio_offset = fp->f_offset;
	td->td_fpop = fp;
	vn_lock(vp);
	error = VOP_READ(vp, uio, 0);
	VOP_UNLOCK(vp);
	td->td_fpop = NULL;
	fp->f_offset = uio->uio_offset;
	return (error);
}

static int
vn_write(struct file *fp, struct uio *uio, struct thread *td)
{
	struct vnode *vp = fp->f_vnode;
	int error;

	uio->uio_offset = fp->f_offset;
	td->td_fpop = fp;
	vn_lock(vp);
	error = VOP_WRITE(vp, uio, fp->f_flag & O_APPEND ? IO_APPEND : 0);
	VOP_UNLOCK(vp);
	td->td_fpop = NULL;
	fp->f_offset = uio->uio_offset;
	return (error);
}

/* From inside the kernel. */
int
vn_rdwr(enum uio_rw rw, struct vnode *vp, void *base, size_t len, off_t offset, size_t *aresid, struct thread *td __unused)
{
	struct uio uio = { base, offset, len, UIO_SYSSPACE, rw };
	int error;

	vn_lock(vp);
	error = rw == UIO_READ ? VOP_READ(vp, &uio, 0) : VOP_WRITE(vp, &uio, 0);
	VOP_UNLOCK(vp);
	if (aresid != NULL)
		*aresid = uio.uio_resid;
	else if (error == 0 && uio.uio_resid != 0)
		error = EIO;
	return (error);
}

static int
vn_truncate(struct file *fp, off_t length, struct thread *td __unused)
{
	int error;

	if (fp->f_vnode->v_type != VREG)
		return (EINVAL);
	vn_lock(fp->f_vnode);
	error = VOP_SETSIZE(fp->f_vnode, length);
	VOP_UNLOCK(fp->f_vnode);
	return (error);
}

int
vn_stat(struct vnode *vp, struct stat *sb)
{
	static const uint32_t vttoif[] = { [VNON] = 0, [VREG] = S_IFREG, [VDIR] = S_IFDIR, [VCHR] = S_IFCHR };
	struct vattr va;
	int error = VOP_GETATTR(vp, &va);

	if (error != 0)
		return (error);
	*sb = (struct stat){ .st_ino = va.va_fileid, .st_size = va.va_size, .st_mtime = va.va_mtime, .st_nlink = va.va_nlink,
		.st_mode = vttoif[va.va_type] | va.va_mode, .st_uid = va.va_uid, .st_gid = va.va_gid, .st_rdev = va.va_rdev,
		.st_blksize = PAGE_SIZE };
	return (0);
}

static int
vn_statfile(struct file *fp, struct stat *sb, struct thread *td __unused)
{
	return (vn_stat(fp->f_vnode, sb));
}

static int
vn_ioctl(struct file *fp, uint64_t com, void *data, struct thread *td __unused)
{
	struct cdev *dev = fp->f_vnode->v_rdev;

	if (fp->f_vnode->v_type != VCHR)
		return (ENOTTY);
	if (dev == NULL)
		return (ENXIO);
	return (dev->si_devsw->d_ioctl == NULL ? ENOTTY : dev->si_devsw->d_ioctl(dev, (uintptr_t)fp->f_data, com, data));
}

static int
vn_closefile(struct file *fp, struct thread *td)
{
	struct cdev *dev = fp->f_vnode->v_rdev;

	if (dev != NULL && dev->si_devsw->d_close != NULL) {
		dev->si_devsw->d_close(dev, (uintptr_t)fp->f_data);
		dev->si_threadcount--;
	}
	return (vn_close(fp->f_vnode, fp->f_flag, td));
}

const struct fileops vnops = {
	.fo_read = vn_read,
	.fo_write = vn_write,
	.fo_truncate = vn_truncate,
	.fo_ioctl = vn_ioctl,
	.fo_stat = vn_statfile,
	.fo_close = vn_closefile,
};
