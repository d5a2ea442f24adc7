/* System calls on names (FreeBSD sys/kern/vfs_syscalls.c). */
#include "sys/dirent.h"
#include "sys/file.h"
#include "sys/malloc.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vnode.h"

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE2(vfs, , stat, mode, "char *", "int");
SDT_PROBE_DEFINE2(vfs, , stat, reg, "char *", "int");

static int
kern_openat(struct thread *td, int fd, const char *path, int flags, int mode)
{
	struct filedesc *fdp = td->td_proc->p_fd;
	struct nameidata nd;
	struct file *fp;
	int error, indx, fflags = FFLAGS(flags & O_ACCMODE) | (flags & ~O_ACCMODE);

	if ((flags & O_ACCMODE) == O_ACCMODE)
		return (EINVAL);
	if ((error = falloc_noinstall(td, &fp)) != 0)
		return (error);
	fp->f_data = NULL;
	NDINIT_AT(&nd, LOOKUP, FOLLOW, UIO_USERSPACE, path, fd);
	if ((error = vn_open(&nd, &fflags, mode & ~fdp->fd_cmask & 07777, fp)) == 0) {
		finit(fp, fflags & (FREAD | FWRITE | O_APPEND | O_NONBLOCK), DTYPE_VNODE, fp->f_data, &vnops);
		fp->f_vnode = nd.ni_vp;
		error = finstall(td, fp, &indx, flags);
		td->td_retval[0] = indx;
	}
	fdrop(fp, td);
	return (error);
}

int
sys_open(struct thread *td, struct open_args *uap)
{
	return (kern_openat(td, AT_FDCWD, uap->path, uap->flags, uap->mode));
}

int
sys_openat(struct thread *td, struct openat_args *uap)
{
	return (kern_openat(td, uap->fd, uap->path, uap->flag, uap->mode));
}

static int
kern_statat(struct thread *td __unused, int fd, const char *path, struct stat *sb)
{
	struct nameidata nd;
	int error;

	NDINIT_AT(&nd, LOOKUP, FOLLOW, UIO_USERSPACE, path, fd);
	if ((error = namei(&nd)) != 0)
		return (error);
	NDFREE_PNBUF(&nd);
	error = vn_stat(nd.ni_vp, sb);
	if (error == 0) {
		SDT_PROBE2(vfs, , stat, mode, path, sb->st_mode);
		if (S_ISREG(sb->st_mode))
			SDT_PROBE2(vfs, , stat, reg, path, UIO_USERSPACE);
	}
	vrele(nd.ni_vp);
	return (error);
}

int
sys_fstatat(struct thread *td, struct fstatat_args *uap)
{
	struct stat sb;
	int error = kern_statat(td, uap->fd, uap->path, &sb);

	return (error != 0 ? error : copyout(&sb, uap->buf, sizeof(sb)));
}

static int
kern_accessat(struct thread *td, const char *path, int amode)
{
	struct stat sb;
	int error = kern_statat(td, AT_FDCWD, path, &sb);

	if (error != 0)
		return (error);
	if (td->td_proc->p_ucred->cr_uid != 0)
		return ((amode & 7) & ~sb.st_mode ? EACCES : 0);
	return (amode & X_OK && !(sb.st_mode & 0111) && !S_ISDIR(sb.st_mode) ? EACCES : 0);
}

int
sys_access(struct thread *td, struct access_args *uap)
{
	return (kern_accessat(td, uap->path, uap->amode));
}

static int
kern_mkdirat(struct thread *td, const char *path, int mode)
{
	struct vattr va = { .va_type = VDIR, .va_mode = mode & 0777 & ~td->td_proc->p_fd->fd_cmask };
	struct nameidata nd;
	int error;

	NDINIT(&nd, CREATE, WANTPARENT | WILLBEDIR, UIO_USERSPACE, path);
	if ((error = namei(&nd)) != 0)
		return (error);
	if (nd.ni_vp != NULL)
		error = EEXIST;
	else {
		vn_lock(nd.ni_dvp);
		error = VOP_MKDIR(nd.ni_dvp, &nd.ni_vp, &nd.ni_cnd, &va);
		VOP_UNLOCK(nd.ni_dvp);
	}
	NDFREE_PNBUF(&nd);
	vrele(nd.ni_dvp);
	if (nd.ni_vp != NULL)
		vrele(nd.ni_vp);
	return (error);
}

int
sys_mkdir(struct thread *td, struct mkdir_args *uap)
{
	return (kern_mkdirat(td, uap->path, uap->mode));
}

/* unlink and rmdir. */
static int
kern_funlinkat(struct thread *td __unused, const char *path, bool directory)
{
	struct nameidata nd;
	int error;

	NDINIT(&nd, DELETE, WANTPARENT, UIO_USERSPACE, path);
	if ((error = namei(&nd)) != 0)
		return (error);
	if (nd.ni_vp == rootvnode || nd.ni_vp == nd.ni_dvp)
		error = EINVAL;
	else if (directory && nd.ni_vp->v_type != VDIR)
		error = ENOTDIR;
	else if (!directory && nd.ni_vp->v_type == VDIR)
		error = EPERM;
	else {
		vn_lock(nd.ni_dvp);
		error = directory ? VOP_RMDIR(nd.ni_dvp, nd.ni_vp, &nd.ni_cnd) : VOP_REMOVE(nd.ni_dvp, nd.ni_vp, &nd.ni_cnd);
		VOP_UNLOCK(nd.ni_dvp);
	}
	NDFREE_PNBUF(&nd);
	vrele(nd.ni_dvp);
	vrele(nd.ni_vp);
	return (error);
}

int
sys_unlink(struct thread *td, struct unlink_args *uap)
{
	return (kern_funlinkat(td, uap->path, false));
}

int
sys_rmdir(struct thread *td, struct rmdir_args *uap)
{
	return (kern_funlinkat(td, uap->path, true));
}

static int
kern_linkat(struct thread *td __unused, const char *path, const char *to)
{
	struct nameidata nd, tnd;
	int error;

	NDINIT(&nd, LOOKUP, FOLLOW, UIO_USERSPACE, path);
	if ((error = namei(&nd)) != 0)
		return (error);
	NDFREE_PNBUF(&nd);
	NDINIT(&tnd, CREATE, WANTPARENT, UIO_USERSPACE, to);
	if ((error = namei(&tnd)) == 0) {
		if (nd.ni_vp->v_type == VDIR)
			error = EPERM;
		else if (tnd.ni_vp != NULL)
			error = EEXIST;
		else {
			vn_lock(tnd.ni_dvp);
			error = VOP_LINK(tnd.ni_dvp, nd.ni_vp, &tnd.ni_cnd);
			VOP_UNLOCK(tnd.ni_dvp);
		}
		NDFREE_PNBUF(&tnd);
		vrele(tnd.ni_dvp);
		if (tnd.ni_vp != NULL)
			vrele(tnd.ni_vp);
	}
	vrele(nd.ni_vp);
	return (error);
}

int
sys_link(struct thread *td, struct link_args *uap)
{
	return (kern_linkat(td, uap->path, uap->to));
}

static int
kern_renameat(struct thread *td __unused, const char *from, const char *to)
{
	struct nameidata fromnd, tond;
	int error;

	NDINIT(&fromnd, DELETE, WANTPARENT, UIO_USERSPACE, from);
	if ((error = namei(&fromnd)) != 0)
		return (error);
	NDINIT(&tond, RENAME, WANTPARENT | (fromnd.ni_vp->v_type == VDIR ? WILLBEDIR : 0), UIO_USERSPACE, to);
	if ((error = namei(&tond)) == 0) {
		error = VOP_RENAME(fromnd.ni_dvp, fromnd.ni_vp, &fromnd.ni_cnd, tond.ni_dvp, tond.ni_vp, &tond.ni_cnd);
		NDFREE_PNBUF(&tond);
		vrele(tond.ni_dvp);
		if (tond.ni_vp != NULL)
			vrele(tond.ni_vp);
	}
	NDFREE_PNBUF(&fromnd);
	vrele(fromnd.ni_dvp);
	vrele(fromnd.ni_vp);
	return (error);
}

int
sys_rename(struct thread *td, struct rename_args *uap)
{
	return (kern_renameat(td, uap->from, uap->to));
}

static int
kern_chdir(struct thread *td, const char *path)
{
	struct filedesc *fdp = td->td_proc->p_fd;
	struct nameidata nd;
	int error;

	NDINIT(&nd, LOOKUP, FOLLOW, UIO_USERSPACE, path);
	if ((error = namei(&nd)) != 0)
		return (error);
	NDFREE_PNBUF(&nd);
	if (nd.ni_vp->v_type != VDIR) {
		vrele(nd.ni_vp);
		return (ENOTDIR);
	}
	vrele(fdp->fd_cdir);
	fdp->fd_cdir = nd.ni_vp;
	return (0);
}

int
sys_chdir(struct thread *td, struct chdir_args *uap)
{
	return (kern_chdir(td, uap->path));
}

int
sys_umask(struct thread *td, struct umask_args *uap)
{
	td->td_retval[0] = td->td_proc->p_fd->fd_cmask;
	td->td_proc->p_fd->fd_cmask = uap->newmask & 0777;
	return (0);
}

static int
kern_lseek(struct thread *td, int fd, off_t offset, int whence)
{
	struct file *fp;
	struct vattr va;
	int error = fget(td, fd, &fp);

	if (error != 0)
		return (error);
	if (fp->f_type != DTYPE_VNODE)
		error = ESPIPE;
	else if (whence == SEEK_CUR)
		offset += fp->f_offset;
	else if (whence == SEEK_END) {
		if ((error = VOP_GETATTR(fp->f_vnode, &va)) == 0)
			offset += va.va_size;
	} else if (whence != SEEK_SET)
		error = EINVAL;
	if (error == 0 && offset < 0)
		error = EINVAL;
	if (error == 0)
		td->td_retval[0] = fp->f_offset = offset;
	fdrop(fp, td);
	return (error);
}

int
sys_lseek(struct thread *td, struct lseek_args *uap)
{
	return (kern_lseek(td, uap->fd, uap->offset, uap->whence));
}

static int
kern_getdirentries(struct thread *td, int fd, char *buf, size_t count, off_t *basep)
{
	struct uio uio = { buf, 0, count, UIO_USERSPACE, UIO_READ };
	struct file *fp;
	int error = fget_read(td, fd, &fp), eof;

	if (error != 0)
		return (error);
	if (fp->f_type != DTYPE_VNODE || fp->f_vnode->v_type != VDIR)
		error = EINVAL;
	else {
		*basep = uio.uio_offset = fp->f_offset;
		vn_lock(fp->f_vnode);
		error = VOP_READDIR(fp->f_vnode, &uio, &eof);
		VOP_UNLOCK(fp->f_vnode);
		fp->f_offset = uio.uio_offset;
		td->td_retval[0] = count - uio.uio_resid;
	}
	fdrop(fp, td);
	return (error);
}

int
sys_getdirentries(struct thread *td, struct getdirentries_args *uap)
{
	off_t base;
	int error = kern_getdirentries(td, uap->fd, uap->buf, uap->count, &base);

	if (error == 0 && uap->basep != NULL)
		error = copyout(&base, uap->basep, sizeof(base));
	return (error);
}

int
sys_fsync(struct thread *td, struct fsync_args *uap)
{
	struct file *fp;
	int error = fget(td, uap->fd, &fp);

	return (error != 0 ? error : fdrop(fp, td)); /* memory is where files are */
}

int
sys___getcwd(struct thread *td, struct __getcwd_args *uap)
{
	char *path = malloc(PATH_MAX, M_TEMP, M_WAITOK);
	size_t length;
	int error = vn_getcwd(td->td_proc->p_fd->fd_cdir, path, &length);

	if (error == 0)
		error = length > uap->buflen ? ENOMEM : copyout(path, uap->buf, length);
	free(path, M_TEMP);
	return (error);
}
