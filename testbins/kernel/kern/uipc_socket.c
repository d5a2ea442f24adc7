/* Sockets, whatever protocol carries them (FreeBSD sys/kern/uipc_socket.c, uipc_sockbuf.c). */
#include "sys/errno.h"
#include "sys/malloc.h"
#include "sys/socketvar.h"
#include "sys/systm.h"

MALLOC_DEFINE(M_SOCKET, "socket", "sockets and their buffers");

#define SB_SIZE 8192	 /* of a stream's buffer */
#define DGRAM_MAX 9216	 /* the longest datagram (FreeBSD's net.inet.udp.maxdgram) */
#define SOMAXCONN 16

/* ---- buffers ---- */

unsigned
sbspace(const struct sockbuf *sb)
{
	return (sb->sb_ccc < sb->sb_hiwat ? sb->sb_hiwat - sb->sb_ccc : 0);
}

/* Adds bytes for which there is room; the ring goes round its end. */
void
sbappend(struct sockbuf *sb, const char *data, unsigned n)
{
	unsigned in = (sb->sb_out + sb->sb_ccc) % sb->sb_hiwat, first = MIN(n, sb->sb_hiwat - in);

	memcpy(sb->sb_base + in, data, first);
	memcpy(sb->sb_base, data + first, n - first);
	sb->sb_ccc += n;
}

void
sbcopy(const struct sockbuf *sb, unsigned offset, char *to, unsigned n)
{
	unsigned out = (sb->sb_out + offset) % sb->sb_hiwat, first = MIN(n, sb->sb_hiwat - out);

	memcpy(to, sb->sb_base + out, first);
	memcpy(to + first, sb->sb_base, n - first);
}

void
sbdrop(struct sockbuf *sb, unsigned n)
{
	sb->sb_out = (sb->sb_out + n) % sb->sb_hiwat;
	sb->sb_ccc -= n;
}

static void
sbinit(struct sockbuf *sb, bool stream)
{
	TAILQ_INIT(&sb->sb_mb);
	sb->sb_hiwat = SB_SIZE;
	if (stream)
		sb->sb_base = malloc(SB_SIZE, M_SOCKET, M_WAITOK);
	else
		sb->sb_hiwat = 4 * DGRAM_MAX;
}

static void
sbdestroy(struct sockbuf *sb)
{
	struct mbuf *m;

	while ((m = TAILQ_FIRST(&sb->sb_mb)) != NULL) {
		TAILQ_REMOVE(&sb->sb_mb, m, m_nextpkt);
		m_freem(m);
	}
	if (sb->sb_base != NULL)
		free(sb->sb_base, M_SOCKET);
}

void
sorwakeup(struct socket *so)
{
	wakeup(&so->so_rcv);
}

void
sowwakeup(struct socket *so)
{
	wakeup(&so->so_snd);
}

/* ---- the life of a socket ---- */

static struct socket *
soalloc(const struct protosw *proto)
{
	struct socket *so = malloc(sizeof(*so), M_SOCKET, M_WAITOK | M_ZERO);

	so->so_proto = proto;
	so->so_pid = curthread->td_proc->p_pid;
	TAILQ_INIT(&so->so_comp);
	sbinit(&so->so_snd, proto->pr_type == SOCK_STREAM);
	sbinit(&so->so_rcv, proto->pr_type == SOCK_STREAM);
	return (so);
}

__noinline int
socreate(int type, int protocol, struct socket **aso, struct thread *td __unused)
{
	const struct protosw *proto = type == SOCK_STREAM ? &tcp_protosw : type == SOCK_DGRAM ? &udp_protosw : NULL;

	if (proto == NULL || (protocol != 0 && protocol != proto->pr_protocol))
		return (EPROTONOSUPPORT);
	*aso = soalloc(proto);
	return (proto->pr_attach(*aso));
}

void
sofree(struct socket *so)
{
	sbdestroy(&so->so_snd);
	sbdestroy(&so->so_rcv);
	free(so, M_SOCKET);
}

/* A socket for a connection that comes in; NULL: too many wait already. No descriptor has it before accept. */
__noinline struct socket *
sonewconn(struct socket *head)
{
	struct socket *so;

	if (head->so_qlen >= head->so_qlimit)
		return (NULL);
	so = soalloc(head->so_proto);
	so->so_pid = head->so_pid;
	if (so->so_proto->pr_attach(so) != 0) {
		sofree(so);
		return (NULL);
	}
	so->so_state |= SS_NOFDREF;
	so->so_head = head;
	head->so_qlen++;
	return (so);
}

void
soisconnecting(struct socket *so)
{
	so->so_state |= SS_ISCONNECTING;
}

void
soisconnected(struct socket *so)
{
	so->so_state = (so->so_state & ~SS_ISCONNECTING) | SS_ISCONNECTED;
	if (so->so_head != NULL) {
		so->so_state &= ~SS_NOFDREF; /* who accepts it will have it */
		TAILQ_INSERT_TAIL(&so->so_head->so_comp, so, so_list);
		wakeup(&so->so_head->so_comp);
	}
	wakeup(so);
}

void
socantsendmore(struct socket *so)
{
	so->so_state |= SS_CANTSENDMORE;
	sowwakeup(so);
}

void
socantrcvmore(struct socket *so)
{
	so->so_state |= SS_CANTRCVMORE;
	sorwakeup(so);
}

/* The protocol has released it. A socket that never connected gives its place in the queue back. */
void
soisdisconnected(struct socket *so)
{
	so->so_state = (so->so_state & ~(SS_ISCONNECTED | SS_ISCONNECTING)) | SS_CANTSENDMORE | SS_CANTRCVMORE;
	if (so->so_head != NULL && so->so_state & SS_NOFDREF) {
		so->so_head->so_qlen--;
		so->so_head = NULL;
	}
	sowwakeup(so);
	sorwakeup(so);
	wakeup(so);
}

int
solisten(struct socket *so, int backlog)
{
	int error = so->so_proto->pr_listen != NULL ? so->so_proto->pr_listen(so) : EOPNOTSUPP;

	if (error == 0) {
		so->so_state |= SS_LISTENING;
		so->so_qlimit = backlog <= 0 || backlog > SOMAXCONN ? SOMAXCONN : backlog;
	}
	return (error);
}

/* Waits for a connection that is made, and takes it. */
__noinline int
soaccept(struct socket *head, bool nonblocking, struct socket **aso)
{
	int error;

	if (!(head->so_state & SS_LISTENING))
		return (EINVAL);
	while ((*aso = TAILQ_FIRST(&head->so_comp)) == NULL) {
		if (nonblocking)
			return (EAGAIN);
		if ((error = tsleep(&head->so_comp, PCATCH, "accept", 0)) != 0)
			return (error);
	}
	TAILQ_REMOVE(&head->so_comp, *aso, so_list);
	(*aso)->so_head = NULL;
	(*aso)->so_pid = curthread->td_proc->p_pid;
	head->so_qlen--;
	return (0);
}

__noinline int
soconnect(struct socket *so, struct sockaddr_in *nam)
{
	int error;

	if (so->so_state & SS_LISTENING)
		return (EOPNOTSUPP);
	if (so->so_state & (SS_ISCONNECTED | SS_ISCONNECTING) && so->so_proto->pr_type == SOCK_STREAM)
		return (so->so_state & SS_ISCONNECTED ? EISCONN : EALREADY);
	if ((error = so->so_proto->pr_connect(so, nam)) != 0)
		return (error);
	swi_net();
	while (so->so_state & SS_ISCONNECTING && so->so_error == 0)
		if ((error = tsleep(so, PCATCH, "connec", 0)) != 0)
			return (error);
	error = so->so_error;
	so->so_error = 0;
	return (error);
}

static int
sosend_dgram(struct socket *so, struct sockaddr_in *addr, struct uio *uio)
{
	struct mbuf *m;
	int error;

	if (uio->uio_resid > DGRAM_MAX)
		return (EMSGSIZE);
	m = m_gethdr(uio->uio_resid);
	if ((error = uiomove(m->m_data, m->m_len, uio)) != 0) {
		m_freem(m);
		return (error);
	}
	return (so->so_proto->pr_send(so, m, addr));
}

/* The next piece of the ring that bytes may be moved to or from at once. */
static int
sb_uiomove(struct sockbuf *sb, unsigned at, unsigned n, struct uio *uio)
{
	unsigned place = at % sb->sb_hiwat, first = MIN(n, sb->sb_hiwat - place);
	int error = uiomove(sb->sb_base + place, first, uio);

	return (error != 0 || first == n ? error : uiomove(sb->sb_base, n - first, uio));
}

static int
sosend_stream(struct socket *so, struct uio *uio, bool nonblocking)
{
	struct sockbuf *sb = &so->so_snd;
	unsigned n;
	int error = 0;

	if (!(so->so_state & SS_ISCONNECTED) && !(so->so_state & SS_CANTSENDMORE))
		return (ENOTCONN);
	while (uio->uio_resid > 0 && error == 0) {
		if (so->so_error != 0) {
			error = so->so_error;
			so->so_error = 0;
		} else if (so->so_state & SS_CANTSENDMORE)
			error = EPIPE;
		else if ((n = MIN(sbspace(sb), uio->uio_resid)) == 0)
			error = nonblocking ? EAGAIN : tsleep(sb, PCATCH, "sbwait", 0);
		else if ((error = sb_uiomove(sb, sb->sb_out + sb->sb_ccc, n, uio)) == 0) {
			sb->sb_ccc += n;
			error = so->so_proto->pr_send(so, NULL, NULL);
			swi_net();
		}
	}
	return (error);
}

__noinline int
sosend(struct socket *so, struct sockaddr_in *addr, struct uio *uio, bool nonblocking)
{
	int error;

	if (so->so_proto->pr_type == SOCK_STREAM)
		return (addr != NULL ? EISCONN : sosend_stream(so, uio, nonblocking));
	error = so->so_state & SS_CANTSENDMORE ? EPIPE : sosend_dgram(so, addr, uio);
	swi_net();
	return (error);
}

static int
soreceive_dgram(struct socket *so, struct sockaddr_in *from, struct uio *uio)
{
	struct mbuf *m = TAILQ_FIRST(&so->so_rcv.sb_mb);
	int error;

	TAILQ_REMOVE(&so->so_rcv.sb_mb, m, m_nextpkt);
	so->so_rcv.sb_ccc -= m->m_len;
	if (from != NULL)
		*from = m->m_from;
	error = uiomove(m->m_data, MIN((size_t)m->m_len, uio->uio_resid), uio); /* what does not fit is lost */
	m_freem(m);
	return (error);
}

/* Waits for bytes or a datagram; nothing, once the other side has sent all. */
__noinline int
soreceive(struct socket *so, struct sockaddr_in *from, struct uio *uio, bool nonblocking)
{
	struct sockbuf *sb = &so->so_rcv;
	bool stream = so->so_proto->pr_type == SOCK_STREAM;
	unsigned n;
	int error;

	if (stream && !(so->so_state & (SS_ISCONNECTED | SS_CANTRCVMORE)))
		return (ENOTCONN);
	while (stream ? sb->sb_ccc == 0 : TAILQ_EMPTY(&sb->sb_mb)) {
		if ((error = so->so_error) != 0) {
			so->so_error = 0;
			return (error);
		}
		if (so->so_state & SS_CANTRCVMORE)
			return (0);
		if (nonblocking)
			return (EAGAIN);
		if ((error = tsleep(sb, PCATCH, "sbwait", 0)) != 0)
			return (error);
	}
	if (!stream)
		return (soreceive_dgram(so, from, uio));
	n = MIN(sb->sb_ccc, uio->uio_resid);
	if ((error = sb_uiomove(sb, sb->sb_out, n, uio)) == 0) {
		sbdrop(sb, n);
		so->so_proto->pr_rcvd(so);
		swi_net();
	}
	return (error);
}

int
soshutdown(struct socket *so, int how)
{
	int error = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return (EINVAL);
	if (!(so->so_state & SS_ISCONNECTED))
		return (ENOTCONN);
	if (how != SHUT_WR)
		socantrcvmore(so);
	if (how != SHUT_RD)
		error = so->so_proto->pr_shutdown(so);
	swi_net();
	return (error);
}

/* The last descriptor is gone. */
int
soclose(struct socket *so)
{
	struct socket *waiting;

	while ((waiting = TAILQ_FIRST(&so->so_comp)) != NULL) {
		TAILQ_REMOVE(&so->so_comp, waiting, so_list);
		waiting->so_head = NULL;
		soclose(waiting);
	}
	so->so_state |= SS_NOFDREF;
	so->so_proto->pr_close(so);
	swi_net();
	return (0);
}
