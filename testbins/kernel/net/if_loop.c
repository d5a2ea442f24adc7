/*
 * lo0: what is sent comes back (FreeBSD sys/net/if_loop.c, netisr.c). A packet that is sent while another is being
 * received only joins the queue; the sender of the first handles all of them, so that no stack grows.
 */
#include "netinet/in_pcb.h"
#include "sys/systm.h"

struct ifnet lo0 = { .if_xname = "lo0", .if_index = 1, .if_mtu = 16384, .if_addr = { htonl(INADDR_LOOPBACK) } };
static TAILQ_HEAD(, mbuf) netisr_queue = TAILQ_HEAD_INITIALIZER(netisr_queue);
static bool swi_net_running;

__noinline int
if_simloop(struct ifnet *ifp, struct mbuf *m)
{
	m->m_rcvif = ifp;
	TAILQ_INSERT_TAIL(&netisr_queue, m, m_nextpkt);
	return (0);
}

/* Receives what is in the queue; nothing here sleeps, so no other thread comes in between. */
void
swi_net(void)
{
	struct mbuf *m;

	if (swi_net_running)
		return;
	swi_net_running = true;
	while ((m = TAILQ_FIRST(&netisr_queue)) != NULL) {
		TAILQ_REMOVE(&netisr_queue, m, m_nextpkt);
		ip_input(m);
	}
	swi_net_running = false;
}
