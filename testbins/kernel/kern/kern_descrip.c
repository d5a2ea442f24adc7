/* Descriptors and open files (FreeBSD sys/kern/kern_descrip.c). */
#include "sys/file.h"
#include "sys/malloc.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

MALLOC_DEFINE(M_FILEDESC, "filedesc", "open file descriptor table");

static uma_zone_t file_zone;

static void
filelistinit(const void *unused __unused)
{
	file_zone = uma_zcreate("Files", sizeof(struct file));
}
SYSINIT(filelistinit, SI_SUB_LOCK, SI_ORDER_FIRST, filelistinit, NULL);

/* The lowest free descriptor from minfd on. */
int
fdalloc(struct thread *td, int minfd, int *result)
{
	struct filedesc *fdp = td->td_proc->p_fd;

	for (int fd = minfd; fd < NOFILE; fd++)
		if (fdp->fd_ofiles[fd].fde_file == NULL) {
			*result = fd;
			return (0);
		}
	return (EMFILE);
}

int
falloc_noinstall(struct thread *td __unused, struct file **resultfp)
{
	struct file *fp = uma_zalloc(file_zone, M_WAITOK);

	if (fp == NULL)
		return (ENFILE);
	bzero(fp, sizeof(*fp));
	fp->f_count = 1;
	*resultfp = fp;
	return (0);
}

/* The descriptor takes a reference of its own. */
int
finstall(struct thread *td, struct file *fp, int *resultfd, int flags)
{
	struct filedescent *fde;
	int error = fdalloc(td, 0, resultfd);

	if (error != 0)
		return (error);
	fde = &td->td_proc->p_fd->fd_ofiles[*resultfd];
	fde->fde_file = fp;
	fde->fde_flags = flags & O_CLOEXEC ? FD_CLOEXEC : 0;
	fhold(fp);
	return (0);
}

int
falloc(struct thread *td, struct file **resultfp, int *resultfd, int flags)
{
	int error = falloc_noinstall(td, resultfp);

	if (error == 0 && (error = finstall(td, *resultfp, resultfd, flags)) != 0)
		fdrop(*resultfp, td);
	return (error);
}

void
finit(struct file *fp, int flag, short type, void *data, const struct fileops *ops)
{
	fp->f_data = data;
	fp->f_flag = flag;
	fp->f_type = type;
	fp->f_ops = ops;
}

void
fhold(struct file *fp)
{
	fp->f_count++;
}

/* The last reference is gone. */
int
_fdrop(struct file *fp, struct thread *td)
{
	int error = fp->f_ops != NULL ? fp->f_ops->fo_close(fp, td) : 0;

	uma_zfree(file_zone, fp);
	return (error);
}

int
fdrop(struct file *fp, struct thread *td)
{
	return (--fp->f_count == 0 ? _fdrop(fp, td) : 0);
}

/* The file of a descriptor, open for what flags say (0: anything), held; EBADF otherwise. */
static int
_fget(struct thread *td, int fd, struct file **fpp, int flags)
{
	struct filedesc *fdp = td->td_proc->p_fd;
	struct file *fp;

	if ((unsigned)fd >= NOFILE || (fp = fdp->fd_ofiles[fd].fde_file) == NULL || (flags != 0 && !(fp->f_flag & flags)))
		return (EBADF);
	fhold(fp);
	*fpp = fp;
	return (0);
}

int
fget(struct thread *td, int fd, struct file **fpp)
{
	return (_fget(td, fd, fpp, 0));
}

int
fget_read(struct thread *td, int fd, struct file **fpp)
{
	return (_fget(td, fd, fpp, FREAD));
}

int
fget_write(struct thread *td, int fd, struct file **fpp)
{
	return (_fget(td, fd, fpp, FWRITE));
}

int
closef(struct file *fp, struct thread *td)
{
	return (fdrop(fp, td));
}

/* Undoes finstall, if the descriptor was not closed meanwhile. */
void
fdclose(struct thread *td, struct file *fp, int fd)
{
	struct filedescent *fde = &td->td_proc->p_fd->fd_ofiles[fd];

	if (fde->fde_file == fp) {
		fde->fde_file = NULL;
		fdrop(fp, td);
	}
}

struct filedesc *
fdinit(void)
{
	struct filedesc *fdp = malloc(sizeof(*fdp), M_FILEDESC, M_WAITOK | M_ZERO);

	fdp->fd_refcnt = 1;
	fdp->fd_cmask = 022;
	return (fdp);
}

struct filedesc *
fdcopy(struct filedesc *fdp)
{
	struct filedesc *newfdp = fdinit();

	*newfdp = *fdp;
	newfdp->fd_refcnt = 1;
	for (int fd = 0; fd < NOFILE; fd++)
		if (newfdp->fd_ofiles[fd].fde_file != NULL)
			fhold(newfdp->fd_ofiles[fd].fde_file);
	if (newfdp->fd_cdir != NULL) {
		vref(newfdp->fd_cdir);
		vref(newfdp->fd_rdir);
	}
	return (newfdp);
}

void
fdescfree(struct thread *td)
{
	struct filedesc *fdp = td->td_proc->p_fd;

	td->td_proc->p_fd = NULL;
	if (--fdp->fd_refcnt > 0)
		return;
	for (int fd = 0; fd < NOFILE; fd++)
		if (fdp->fd_ofiles[fd].fde_file != NULL)
			closef(fdp->fd_ofiles[fd].fde_file, td);
	if (fdp->fd_cdir != NULL) {
		vrele(fdp->fd_cdir);
		vrele(fdp->fd_rdir);
	}
	free(fdp, M_FILEDESC);
}

void
fdcloseexec(struct thread *td)
{
	for (int fd = 0; fd < NOFILE; fd++)
		if (td->td_proc->p_fd->fd_ofiles[fd].fde_flags & FD_CLOEXEC)
			kern_close(td, fd);
}

int
kern_close(struct thread *td, int fd)
{
	struct filedesc *fdp = td->td_proc->p_fd;
	struct file *fp;

	if ((unsigned)fd >= NOFILE || (fp = fdp->fd_ofiles[fd].fde_file) == NULL)
		return (EBADF);
	fdp->fd_ofiles[fd] = (struct filedescent){ NULL, 0 };
	return (closef(fp, td));
}

int
sys_close(struct thread *td, struct close_args *uap)
{
	return (kern_close(td, uap->fd));
}

/* new -1: the lowest free from minfd on. */
static int
kern_dup(struct thread *td, int old, int new, int minfd, int flags)
{
	struct filedesc *fdp = td->td_proc->p_fd;
	struct file *fp;
	int error;

	if (new >= NOFILE || (error = fget(td, old, &fp)) != 0)
		return (EBADF);
	if (new == -1 && (error = fdalloc(td, minfd, &new)) != 0) {
		fdrop(fp, td);
		return (error);
	}
	td->td_retval[0] = new;
	if (new == old) {
		fdrop(fp, td);
		return (0);
	}
	if (fdp->fd_ofiles[new].fde_file != NULL)
		kern_close(td, new);
	fdp->fd_ofiles[new] = (struct filedescent){ fp, flags };
	return (0);
}

int
sys_dup(struct thread *td, struct dup_args *uap)
{
	return (kern_dup(td, uap->fd, -1, 0, 0));
}

int
sys_dup2(struct thread *td, struct dup2_args *uap)
{
	return (kern_dup(td, uap->from, uap->to >= NOFILE ? NOFILE : (int)uap->to, 0, 0));
}

static int
kern_fcntl(struct thread *td, int fd, int cmd, int64_t arg)
{
	struct filedescent *fde;
	struct file *fp;
	int error = fget(td, fd, &fp);

	if (error != 0)
		return (error);
	fde = &td->td_proc->p_fd->fd_ofiles[fd];
	switch (cmd) {
	case F_DUPFD:
		error = arg < 0 || arg >= NOFILE ? EINVAL : kern_dup(td, fd, -1, arg, 0);
		break;
	case F_GETFD:
		td->td_retval[0] = fde->fde_flags;
		break;
	case F_SETFD:
		fde->fde_flags = arg & FD_CLOEXEC;
		break;
	case F_GETFL:
		td->td_retval[0] = (fp->f_flag & (O_APPEND | O_NONBLOCK)) | ((fp->f_flag & (FREAD | FWRITE)) - 1);
		break;
	case F_SETFL:
		fp->f_flag = (fp->f_flag & ~(O_APPEND | O_NONBLOCK)) | (arg & (O_APPEND | O_NONBLOCK));
		break;
	default:
		error = EINVAL;
		break;
	}
	fdrop(fp, td);
	return (error);
}

int
sys_fcntl(struct thread *td, struct fcntl_args *uap)
{
	return (kern_fcntl(td, uap->fd, uap->cmd, uap->arg));
}

static int
kern_fstat(struct thread *td, int fd, struct stat *sb)
{
	struct file *fp;
	int error = fget(td, fd, &fp);

	if (error != 0)
		return (error);
	bzero(sb, sizeof(*sb));
	error = fp->f_ops->fo_stat(fp, sb, td);
	fdrop(fp, td);
	return (error);
}

int
sys_fstat(struct thread *td, struct fstat_args *uap)
{
	struct stat sb;
	int error = kern_fstat(td, uap->fd, &sb);

	return (error != 0 ? error : copyout(&sb, uap->sb, sizeof(sb)));
}

/* Operations a kind of file does not have. */
int
invfo_truncate(struct file *fp __unused, off_t length __unused, struct thread *td __unused)
{
	return (EINVAL);
}

int
invfo_ioctl(struct file *fp __unused, uint64_t com __unused, void *data __unused, struct thread *td __unused)
{
	return (ENOTTY);
}
