/* Sockets as the kernel has them (FreeBSD sys/sys/socketvar.h, sockbuf.h, protosw.h). */
#ifndef SYS_SOCKETVAR_H
#define SYS_SOCKETVAR_H

#include "sys/mbuf.h"
#include "sys/uio.h"

struct inpcb;
struct socket;
struct thread;

/* What waits to be sent or read: of a stream a ring of bytes, of datagrams their packets. */
struct sockbuf {
	char *sb_base;
	unsigned sb_out;
	unsigned sb_ccc;   /* bytes */
	unsigned sb_hiwat; /* at most */
	TAILQ_HEAD(, mbuf) sb_mb;
};

struct protosw {
	short pr_type, pr_protocol;
	int (*pr_attach)(struct socket *so);
	int (*pr_bind)(struct socket *so, struct sockaddr_in *nam);
	int (*pr_listen)(struct socket *so);
	int (*pr_connect)(struct socket *so, struct sockaddr_in *nam);
	int (*pr_send)(struct socket *so, struct mbuf *m, struct sockaddr_in *nam); /* of a stream m is NULL: it is in so_snd */
	void (*pr_rcvd)(struct socket *so);
	int (*pr_shutdown)(struct socket *so);
	void (*pr_close)(struct socket *so); /* no descriptor has it any more; the socket goes when the protocol lets it */
};

struct socket {
	const struct protosw *so_proto;
	struct inpcb *so_pcb;
	struct sockbuf so_snd, so_rcv;
	int so_state; /* SS_* */
	int so_error;
	int so_qlimit, so_qlen;
	struct socket *so_head;	/* of one not yet accepted: the socket that listens */
	TAILQ_HEAD(, socket) so_comp;
	TAILQ_ENTRY(socket) so_list;
	pid_t so_pid;		/* who made it */
};

#define SS_NOFDREF 0x0001
#define SS_ISCONNECTED 0x0002
#define SS_ISCONNECTING 0x0004
#define SS_CANTSENDMORE 0x0010
#define SS_CANTRCVMORE 0x0020
#define SS_LISTENING 0x0100

extern const struct protosw tcp_protosw, udp_protosw;

int socreate(int type, int protocol, struct socket **aso, struct thread *td);
struct socket *sonewconn(struct socket *head);
void sofree(struct socket *so);
void soisconnecting(struct socket *so);
void soisconnected(struct socket *so);
void soisdisconnected(struct socket *so);
void socantsendmore(struct socket *so);
void socantrcvmore(struct socket *so);
int soaccept(struct socket *head, bool nonblocking, struct socket **aso);
int soconnect(struct socket *so, struct sockaddr_in *nam);
int solisten(struct socket *so, int backlog);
int sosend(struct socket *so, struct sockaddr_in *addr, struct uio *uio, bool nonblocking);
int soreceive(struct socket *so, struct sockaddr_in *from, struct uio *uio, bool nonblocking);
int soshutdown(struct socket *so, int how);
int soclose(struct socket *so);
void sorwakeup(struct socket *so);
void sowwakeup(struct socket *so);
unsigned sbspace(const struct sockbuf *sb);
void sbappend(struct sockbuf *sb, const char *data, unsigned n);
void sbcopy(const struct sockbuf *sb, unsigned offset, char *to, unsigned n);
void sbdrop(struct sockbuf *sb, unsigned n);
void swi_net(void); /* if_loop.c */

#endif
