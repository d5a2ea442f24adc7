/* The system calls of sockets, and sockets as files (FreeBSD sys/kern/uipc_syscalls.c, sys_socket.c). */
#include "netinet/in_pcb.h"
#include "sys/errno.h"
#include "sys/file.h"
#include "sys/socketvar.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

static bool
nonblocking(const struct file *fp)
{
	return (fp->f_flag & O_NONBLOCK);
}

static int
soo_read(struct file *fp, struct uio *uio, struct thread *td __unused)
{
	return (soreceive(fp->f_data, NULL, uio, nonblocking(fp)));
}

static int
soo_write(struct file *fp, struct uio *uio, struct thread *td __unused)
{
	return (sosend(fp->f_data, NULL, uio, nonblocking(fp)));
}

static int
soo_stat(struct file *fp, struct stat *sb, struct thread *td __unused)
{
	const struct socket *so = fp->f_data;

	sb->st_mode = S_IFSOCK | 0666;
	sb->st_size = so->so_rcv.sb_ccc;
	return (0);
}

static int
soo_close(struct file *fp, struct thread *td __unused)
{
	return (soclose(fp->f_data));
}

static const struct fileops socketops = {
	.fo_read = soo_read,
	.fo_write = soo_write,
	.fo_truncate = invfo_truncate,
	.fo_ioctl = invfo_ioctl,
	.fo_stat = soo_stat,
	.fo_close = soo_close,
};

/* A descriptor for a socket. */
static int
sofile(struct thread *td, struct socket *so, int flags)
{
	struct file *fp;
	int fd, error = falloc(td, &fp, &fd, flags);

	if (error != 0) {
		soclose(so);
		return (error);
	}
	finit(fp, FREAD | FWRITE | (flags & O_NONBLOCK), DTYPE_SOCKET, so, &socketops);
	fdrop(fp, td);
	td->td_retval[0] = fd;
	return (0);
}

/* The socket of a descriptor, with the file held. */
static int
getsock(struct thread *td, int fd, struct file **fpp, struct socket **so)
{
	int error = fget(td, fd, fpp);

	if (error != 0)
		return (error);
	if ((*fpp)->f_type != DTYPE_SOCKET) {
		fdrop(*fpp, td);
		return (ENOTSOCK);
	}
	*so = (*fpp)->f_data;
	return (0);
}

static int
getsockaddr(struct sockaddr_in *sin, const void *name, unsigned length)
{
	int error;

	if (length < sizeof(*sin))
		return (EINVAL);
	if ((error = copyin(name, sin, sizeof(*sin))) != 0)
		return (error);
	return (sin->sin_family == AF_INET ? 0 : EAFNOSUPPORT);
}

/* An address for a program that has said how much room there is, and is told how much was needed. */
static int
putsockaddr(const struct sockaddr_in *sin, void *name, void *lengthp)
{
	unsigned length, full = sizeof(*sin);
	int error;

	if (name == NULL)
		return (0);
	if ((error = copyin(lengthp, &length, sizeof(length))) != 0)
		return (error);
	if ((error = copyout(sin, name, MIN(length, full))) != 0)
		return (error);
	return (copyout(&full, lengthp, sizeof(full)));
}

int
sys_socket(struct thread *td, struct socket_args *uap)
{
	struct socket *so;
	int error;

	if (uap->domain != AF_INET)
		return (EAFNOSUPPORT);
	if ((error = socreate(uap->type & 0xf, uap->protocol, &so, td)) != 0)
		return (error);
	return (sofile(td, so, 0));
}

int
sys_bind(struct thread *td, struct bind_args *uap)
{
	struct sockaddr_in sin;
	struct socket *so;
	struct file *fp;
	int error;

	if ((error = getsockaddr(&sin, uap->name, uap->namelen)) != 0 || (error = getsock(td, uap->s, &fp, &so)) != 0)
		return (error);
	error = so->so_proto->pr_bind(so, &sin);
	fdrop(fp, td);
	return (error);
}

int
sys_listen(struct thread *td, struct listen_args *uap)
{
	struct socket *so;
	struct file *fp;
	int error = getsock(td, uap->s, &fp, &so);

	if (error != 0)
		return (error);
	error = solisten(so, uap->backlog);
	fdrop(fp, td);
	return (error);
}

static struct sockaddr_in
peer_name(const struct socket *so)
{
	const struct inpcb *inp = so->so_pcb;
	struct sockaddr_in sin = { .sin_len = sizeof(sin), .sin_family = AF_INET };

	if (inp != NULL) {
		sin.sin_port = inp->inp_fport;
		sin.sin_addr = inp->inp_faddr;
	}
	return (sin);
}

int
sys_accept(struct thread *td, struct accept_args *uap)
{
	struct socket *head, *so;
	struct sockaddr_in sin;
	struct file *fp;
	int error = getsock(td, uap->s, &fp, &head);

	if (error != 0)
		return (error);
	error = soaccept(head, nonblocking(fp), &so);
	fdrop(fp, td);
	if (error != 0 || (error = sofile(td, so, 0)) != 0)
		return (error);
	sin = peer_name(so);
	if ((error = putsockaddr(&sin, uap->name, uap->anamelen)) != 0)
		kern_close(td, td->td_retval[0]);
	return (error);
}

int
sys_connect(struct thread *td, struct connect_args *uap)
{
	struct sockaddr_in sin;
	struct socket *so;
	struct file *fp;
	int error;

	if ((error = getsockaddr(&sin, uap->name, uap->namelen)) != 0 || (error = getsock(td, uap->s, &fp, &so)) != 0)
		return (error);
	error = soconnect(so, &sin);
	fdrop(fp, td);
	return (error == ERESTART ? EINTR : error);
}

int
sys_sendto(struct thread *td, struct sendto_args *uap)
{
	struct uio uio = { (void *)uap->buf, 0, uap->len, UIO_USERSPACE, UIO_WRITE };
	struct sockaddr_in sin;
	struct socket *so;
	struct file *fp;
	int error;

	if (uap->len > 0x7fffffff)
		return (EINVAL);
	if (uap->to != NULL && (error = getsockaddr(&sin, uap->to, uap->tolen)) != 0)
		return (error);
	if ((error = getsock(td, uap->s, &fp, &so)) != 0)
		return (error);
	error = sosend(so, uap->to != NULL ? &sin : NULL, &uio, nonblocking(fp));
	td->td_retval[0] = uap->len - uio.uio_resid;
	fdrop(fp, td);
	if (error == EPIPE)
		kern_psignal(td->td_proc, SIGPIPE);
	return (error);
}

int
sys_recvfrom(struct thread *td, struct recvfrom_args *uap)
{
	struct uio uio = { uap->buf, 0, uap->len, UIO_USERSPACE, UIO_READ };
	struct sockaddr_in sin;
	struct socket *so;
	struct file *fp;
	int error;

	if (uap->len > 0x7fffffff)
		return (EINVAL);
	if ((error = getsock(td, uap->s, &fp, &so)) != 0)
		return (error);
	sin = peer_name(so);
	error = soreceive(so, &sin, &uio, nonblocking(fp));
	td->td_retval[0] = uap->len - uio.uio_resid;
	fdrop(fp, td);
	return (error != 0 ? error : putsockaddr(&sin, uap->from, uap->fromlenaddr));
}

int
sys_shutdown(struct thread *td, struct shutdown_args *uap)
{
	struct socket *so;
	struct file *fp;
	int error = getsock(td, uap->s, &fp, &so);

	if (error != 0)
		return (error);
	error = soshutdown(so, uap->how);
	fdrop(fp, td);
	return (error);
}

int
sys_getsockname(struct thread *td, struct getsockname_args *uap)
{
	struct sockaddr_in sin = { .sin_len = sizeof(sin), .sin_family = AF_INET };
	struct socket *so;
	struct file *fp;
	int error = getsock(td, uap->fdes, &fp, &so);

	if (error != 0)
		return (error);
	if (so->so_pcb != NULL) {
		sin.sin_port = so->so_pcb->inp_lport;
		sin.sin_addr = so->so_pcb->inp_laddr;
	}
	fdrop(fp, td);
	return (uap->asa != NULL ? putsockaddr(&sin, uap->asa, uap->alen) : EFAULT);
}
