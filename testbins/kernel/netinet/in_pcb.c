/* The ends of connections, by their addresses and ports (FreeBSD sys/netinet/in_pcb.c, in_cksum.c; sys/kern/uipc_mbuf.c). */
#include "netinet/in_pcb.h"
#include "sys/errno.h"
#include "sys/malloc.h"
#include "sys/systm.h"

MALLOC_DEFINE(M_PCB, "pcb", "protocol control blocks");
MALLOC_DEFINE(M_MBUF, "mbuf", "packets");

#define IPPORT_FIRST 49152 /* of the ports for sockets that request none */
#define IPPORT_LAST 65535

struct mbuf *
m_gethdr(int size)
{
	struct mbuf *m = malloc(sizeof(*m) + MAX_HDR + size, M_MBUF, M_WAITOK | M_ZERO);

	m->m_data = m->m_dat + MAX_HDR;
	m->m_len = size;
	return (m);
}

void
m_prepend(struct mbuf *m, int size)
{
	m->m_data -= size;
	m->m_len += size;
}

void
m_adj(struct mbuf *m, int size)
{
	m->m_data += size;
	m->m_len -= size;
}

void
m_freem(struct mbuf *m)
{
	free(m, M_MBUF);
}

/* The Internet checksum (RFC 1071) of data and of what was summed before. */
uint16_t
in_cksum(const void *data, int n, uint32_t sum)
{
	const uint8_t *p = data;

	for (; n > 1; n -= 2, p += 2)
		sum += p[0] | p[1] << 8;
	if (n > 0)
		sum += p[0];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (~sum);
}

/* What a checksum of TCP or UDP has beside the packet: both addresses, the protocol, the length. */
uint32_t
in_pseudo(struct in_addr a, struct in_addr b, uint32_t proto_and_length)
{
	return ((a.s_addr & 0xffff) + (a.s_addr >> 16) + (b.s_addr & 0xffff) + (b.s_addr >> 16) + htons(proto_and_length & 0xffff) +
	    htons(proto_and_length >> 16));
}

int
in_pcballoc(struct socket *so, struct inpcbhead *head)
{
	struct inpcb *inp = malloc(sizeof(*inp), M_PCB, M_WAITOK | M_ZERO);

	inp->inp_head = head;
	inp->inp_socket = so;
	so->so_pcb = inp;
	TAILQ_INSERT_TAIL(head, inp, inp_list);
	return (0);
}

void
in_pcbfree(struct inpcb *inp)
{
	TAILQ_REMOVE(inp->inp_head, inp, inp_list);
	inp->inp_socket->so_pcb = NULL;
	if (inp->inp_ppcb != NULL)
		free(inp->inp_ppcb, M_PCB);
	free(inp, M_PCB);
}

static bool
in_pcbinuse(const struct inpcb *self, uint16_t port)
{
	const struct inpcb *inp;

	TAILQ_FOREACH(inp, self->inp_head, inp_list)
		if (inp != self && inp->inp_lport == port && inp->inp_fport == 0)
			return (true);
	return (false);
}

static bool
in_localaddr(struct in_addr in)
{
	return (ntohl(in.s_addr) >> 24 == 127);
}

/* Binds to an address and port of the machine's; port 0, and nam NULL: one that is free. */
int
in_pcbbind(struct inpcb *inp, const struct sockaddr_in *nam)
{
	static uint16_t lastport = IPPORT_FIRST - 1;

	if (inp->inp_lport != 0)
		return (EINVAL);
	if (nam != NULL && nam->sin_addr.s_addr != INADDR_ANY && !in_localaddr(nam->sin_addr))
		return (EADDRNOTAVAIL);
	if (nam != NULL && nam->sin_port != 0 && in_pcbinuse(inp, nam->sin_port))
		return (EADDRINUSE);
	if (nam != NULL)
		inp->inp_laddr = nam->sin_addr;
	inp->inp_lport = nam != NULL ? nam->sin_port : 0;
	for (int tries = IPPORT_LAST - IPPORT_FIRST; inp->inp_lport == 0 && tries > 0; tries--) {
		lastport = lastport == IPPORT_LAST ? IPPORT_FIRST : lastport + 1;
		if (!in_pcbinuse(inp, htons(lastport)))
			inp->inp_lport = htons(lastport);
	}
	return (inp->inp_lport == 0 ? EADDRNOTAVAIL : 0);
}

int
in_pcbconnect(struct inpcb *inp, const struct sockaddr_in *nam)
{
	struct in_addr faddr = nam->sin_addr;
	int error;

	if (nam->sin_port == 0)
		return (EADDRNOTAVAIL);
	if (faddr.s_addr == INADDR_ANY)
		faddr = lo0.if_addr;
	if (!in_localaddr(faddr))
		return (ENETUNREACH);
	if (inp->inp_lport == 0 && (error = in_pcbbind(inp, NULL)) != 0)
		return (error);
	if (inp->inp_laddr.s_addr == INADDR_ANY)
		inp->inp_laddr = lo0.if_addr;
	inp->inp_faddr = faddr;
	inp->inp_fport = nam->sin_port;
	return (0);
}

/* The end that a packet is for: the connection, else what is bound to the port and has no other end. */
struct inpcb *
in_pcblookup(struct inpcbhead *head, struct in_addr faddr, uint16_t fport, struct in_addr laddr, uint16_t lport)
{
	struct inpcb *inp, *wild = NULL;

	TAILQ_FOREACH(inp, head, inp_list) {
		if (inp->inp_lport != lport || (inp->inp_laddr.s_addr != INADDR_ANY && inp->inp_laddr.s_addr != laddr.s_addr))
			continue;
		if (inp->inp_faddr.s_addr == faddr.s_addr && inp->inp_fport == fport)
			return (inp);
		if (inp->inp_fport == 0)
			wild = inp;
	}
	return (wild);
}
