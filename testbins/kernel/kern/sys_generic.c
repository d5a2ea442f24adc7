/* Reading and writing any kind of file (FreeBSD sys/kern/sys_generic.c). */
#include "sys/cpuvar.h"
#include "sys/file.h"
#include "sys/ioccom.h"
#include "sys/malloc.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

MALLOC_DEFINE(M_IOCTLOPS, "ioctlops", "ioctl data buffer");

#define IOSIZE_MAX 0x7fffffff

int
fo_read(struct file *fp, struct uio *uio, struct thread *td)
{
	return (fp->f_ops->fo_read(fp, uio, td));
}

int
fo_write(struct file *fp, struct uio *uio, struct thread *td)
{
	return (fp->f_ops->fo_write(fp, uio, td));
}

/* A transfer ended early for a signal still moved what it moved. */
static int
dofile_result(struct thread *td, struct uio *uio, size_t count, int error)
{
	if (uio->uio_resid != count && (error == ERESTART || error == EINTR || error == EWOULDBLOCK))
		error = 0;
	td->td_retval[0] = count - uio->uio_resid;
	return (error);
}

static int
dofileread(struct thread *td, struct file *fp, struct uio *uio)
{
	size_t count = uio->uio_resid;

	return (dofile_result(td, uio, count, count > 0 ? fo_read(fp, uio, td) : 0));
}

static int
dofilewrite(struct thread *td, struct file *fp, struct uio *uio)
{
	size_t count = uio->uio_resid;
	int error = dofile_result(td, uio, count, fo_write(fp, uio, td));

	if (error == EPIPE)
		kern_psignal(td->td_proc, SIGPIPE);
	return (error);
}

static int
kern_readv(struct thread *td, int fd, struct uio *uio)
{
	struct file *fp;
	int error = fget_read(td, fd, &fp);

	if (error != 0)
		return (error);
	CPU_STATS_ADD(sysinfo, sysread, 1);
	error = dofileread(td, fp, uio);
	CPU_STATS_ADD(sysinfo, readch, td->td_retval[0]);
	fdrop(fp, td);
	return (error);
}

static int
kern_writev(struct thread *td, int fd, struct uio *uio)
{
	struct file *fp;
	int error = fget_write(td, fd, &fp);

	if (error != 0)
		return (error);
	CPU_STATS_ADD(sysinfo, syswrite, 1);
	error = dofilewrite(td, fp, uio);
	CPU_STATS_ADD(sysinfo, writech, td->td_retval[0]);
	fdrop(fp, td);
	return (error);
}

int
sys_read(struct thread *td, struct read_args *uap)
{
	struct uio uio = { uap->buf, 0, uap->nbyte, UIO_USERSPACE, UIO_READ };

	return (uap->nbyte > IOSIZE_MAX ? EINVAL : kern_readv(td, uap->fd, &uio));
}

int
sys_write(struct thread *td, struct write_args *uap)
{
	struct uio uio = { (void *)uap->buf, 0, uap->nbyte, UIO_USERSPACE, UIO_WRITE };

	return (uap->nbyte > IOSIZE_MAX ? EINVAL : kern_writev(td, uap->fd, &uio));
}

static int
kern_ioctl(struct thread *td, int fd, uint64_t com, void *data)
{
	struct file *fp;
	int error = fget(td, fd, &fp);

	if (error != 0)
		return (error);
	error = fp->f_ops->fo_ioctl(fp, com, data, td);
	fdrop(fp, td);
	return (error);
}

/* The command says how much goes in and comes out, and where to. */
int
sys_ioctl(struct thread *td, struct ioctl_args *uap)
{
	uint64_t com = uap->com & 0xffffffff;
	size_t size = IOCPARM_LEN(com);
	void *data;
	int error = 0;

	if (!(com & (IOC_IN | IOC_OUT)) || size == 0)
		return (kern_ioctl(td, uap->fd, com, uap->data));
	data = malloc(size, M_IOCTLOPS, M_WAITOK | M_ZERO);
	if (com & IOC_IN)
		error = copyin(uap->data, data, size);
	if (error == 0)
		error = kern_ioctl(td, uap->fd, com, data);
	if (error == 0 && com & IOC_OUT)
		error = copyout(data, uap->data, size);
	free(data, M_IOCTLOPS);
	return (error);
}

static int
kern_ftruncate(struct thread *td, int fd, off_t length)
{
	struct file *fp;
	int error;

	if (length < 0)
		return (EINVAL);
	if ((error = fget_write(td, fd, &fp)) != 0)
		return (error == EBADF && fget(td, fd, &fp) == 0 ? (fdrop(fp, td), EINVAL) : error);
	error = fp->f_ops->fo_truncate(fp, length, td);
	fdrop(fp, td);
	return (error);
}

int
sys_ftruncate(struct thread *td, struct ftruncate_args *uap)
{
	return (kern_ftruncate(td, uap->fd, uap->length));
}
