/* Datagrams (FreeBSD sys/netinet/udp_usrreq.c). A datagram for an unused port is dropped: there is no ICMP. */
#include "netinet/in_pcb.h"
#include "netinet/in_kdtrace.h"
#include "sys/cpuvar.h"
#include "sys/errno.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(udp);
SDT_PROBE_DEFINE_UDP(receive);
SDT_PROBE_DEFINE_UDP(send);

struct inpcbhead udb = TAILQ_HEAD_INITIALIZER(udb);

static __noinline int
udp_output(struct inpcb *inp, struct mbuf *m, struct in_addr faddr, uint16_t fport)
{
	struct in_addr laddr = inp->inp_laddr.s_addr != INADDR_ANY ? inp->inp_laddr : lo0.if_addr;
	struct udphdr *uh;

	m_prepend(m, sizeof(*uh));
	uh = mtod(m, struct udphdr *);
	*uh = (struct udphdr){ inp->inp_lport, fport, htons(m->m_len), 0 };
	uh->uh_sum = in_cksum(uh, m->m_len, in_pseudo(laddr, faddr, IPPROTO_UDP + m->m_len));
	if (uh->uh_sum == 0)
		uh->uh_sum = 0xffff; /* 0 says that there is none */
	/* The header of IP is not there yet, but its room is: the probe's arguments point at what it will be. */
	struct ip *ip = (struct ip *)(m->m_data - sizeof(*ip));
	*ip = (struct ip){ .ip_hl = sizeof(*ip) / 4, .ip_v = IPVERSION, .ip_len = htons(m->m_len + sizeof(*ip)), .ip_ttl = IPDEFTTL,
		.ip_p = IPPROTO_UDP, .ip_src = laddr, .ip_dst = faddr };
	CPU_STATS_ADD(mib, udpHCOutDatagrams, 1);
	SDT_PROBE5(udp, , , send, m, inp, (uint8_t *)ip, inp, uh);
	return (ip_output(m, laddr, faddr, IPPROTO_UDP, inp));
}

__noinline void
udp_input(struct mbuf *m)
{
	struct ip ip = *mtod(m, struct ip *);
	struct udphdr *uh = (struct udphdr *)(m->m_data + sizeof(ip));
	int length = m->m_len - sizeof(ip);
	struct inpcb *inp;

	if (length < (int)sizeof(*uh)) {
		CPU_STATS_ADD(mib, udpInErrors, 1);
		m_freem(m);
		return;
	}
	if (in_cksum(uh, length, in_pseudo(ip.ip_src, ip.ip_dst, IPPROTO_UDP + length)) != 0) {
		CPU_STATS_ADD(mib, udpInCksumErrs, 1);
		m_freem(m);
		return;
	}
	inp = in_pcblookup(&udb, ip.ip_src, uh->uh_sport, ip.ip_dst, uh->uh_dport);
	SDT_PROBE5(udp, , , receive, m, inp, (uint8_t *)m->m_data, inp, uh);
	if (inp == NULL) {
		CPU_STATS_ADD(mib, udpNoPorts, 1);
		m_freem(m);
		return;
	}
	if (sbspace(&inp->inp_socket->so_rcv) < (unsigned)length) {
		CPU_STATS_ADD(mib, udpInOverflows, 1);
		m_freem(m);
		return;
	}
	CPU_STATS_ADD(mib, udpHCInDatagrams, 1);
	m->m_from = (struct sockaddr_in){ sizeof(m->m_from), AF_INET, uh->uh_sport, ip.ip_src, { 0 } };
	m_adj(m, sizeof(ip) + sizeof(*uh));
	TAILQ_INSERT_TAIL(&inp->inp_socket->so_rcv.sb_mb, m, m_nextpkt);
	inp->inp_socket->so_rcv.sb_ccc += m->m_len;
	sorwakeup(inp->inp_socket);
}

static int
udp_attach(struct socket *so)
{
	return (in_pcballoc(so, &udb));
}

static int
udp_bind(struct socket *so, struct sockaddr_in *nam)
{
	return (in_pcbbind(so->so_pcb, nam));
}

static int
udp_connect(struct socket *so, struct sockaddr_in *nam)
{
	int error = in_pcbconnect(so->so_pcb, nam);

	if (error == 0)
		soisconnected(so);
	return (error);
}

static int
udp_send(struct socket *so, struct mbuf *m, struct sockaddr_in *nam)
{
	struct inpcb *inp = so->so_pcb;
	struct in_addr faddr = nam != NULL ? nam->sin_addr : inp->inp_faddr;
	uint16_t fport = nam != NULL ? nam->sin_port : inp->inp_fport;
	int error = 0;

	if (nam != NULL && inp->inp_fport != 0)
		error = EISCONN;
	else if (fport == 0)
		error = EDESTADDRREQ;
	else if (faddr.s_addr != INADDR_ANY && ntohl(faddr.s_addr) >> 24 != 127)
		error = ENETUNREACH;
	else if (inp->inp_lport == 0)
		error = in_pcbbind(inp, NULL);
	if (error != 0) {
		m_freem(m);
		return (error);
	}
	return (udp_output(inp, m, faddr.s_addr != INADDR_ANY ? faddr : lo0.if_addr, fport));
}

static int
udp_shutdown(struct socket *so)
{
	socantsendmore(so);
	return (0);
}

static void
udp_close(struct socket *so)
{
	in_pcbfree(so->so_pcb);
	sofree(so);
}

const struct protosw udp_protosw = {
	.pr_type = SOCK_DGRAM,
	.pr_protocol = IPPROTO_UDP,
	.pr_attach = udp_attach,
	.pr_bind = udp_bind,
	.pr_connect = udp_connect,
	.pr_send = udp_send,
	.pr_shutdown = udp_shutdown,
	.pr_close = udp_close,
};
