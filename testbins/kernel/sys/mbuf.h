/* Packets: one block each, with room in front for headers (FreeBSD's mbufs are chains of blocks). */
#ifndef SYS_MBUF_H
#define SYS_MBUF_H

#include "sys/queue.h"
#include "sys/socket.h"

struct ifnet;

#define MAX_HDR 40 /* of IP and TCP */

struct mbuf {
	TAILQ_ENTRY(mbuf) m_nextpkt;
	char *m_data;
	int m_len;
	struct ifnet *m_rcvif;
	struct sockaddr_in m_from; /* of a datagram that waits in a socket */
	char m_dat[];
};
#define mtod(m, type) ((type)(m)->m_data)

struct mbuf *m_gethdr(int size); /* size bytes of data, and room for headers */
void m_prepend(struct mbuf *m, int size);
void m_adj(struct mbuf *m, int size); /* drops bytes in front */
void m_freem(struct mbuf *m);

#endif
