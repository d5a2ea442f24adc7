/* The Internet protocol, as far as one machine needs it: no fragments, no options, no routes (FreeBSD ip_input.c, ip_output.c). */
#include "netinet/in_pcb.h"
#include "netinet/in_kdtrace.h"
#include "sys/cpuvar.h"
#include "sys/errno.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(ip);
SDT_PROBE_DEFINE_IP(receive);
SDT_PROBE_DEFINE_IP(send);

/* cs: the end that sends. */
__noinline int
ip_output(struct mbuf *m, struct in_addr src, struct in_addr dst, int protocol, void *cs)
{
	static uint16_t ip_id;
	struct ip6_hdr *ip6 = NULL;
	struct ip *ip;

	if (m->m_len + (int)sizeof(*ip) > lo0.if_mtu) {
		CPU_STATS_ADD(mib, ipIfStatsOutDiscards, 1);
		m_freem(m);
		return (EMSGSIZE);
	}
	m_prepend(m, sizeof(*ip));
	ip_id++;
	ip = mtod(m, struct ip *);
	*ip = (struct ip){ .ip_hl = sizeof(*ip) / 4, .ip_v = IPVERSION, .ip_len = htons(m->m_len), .ip_id = htons(ip_id),
		.ip_off = htons(IP_DF), .ip_ttl = IPDEFTTL, .ip_p = protocol, .ip_src = src, .ip_dst = dst };
	ip->ip_sum = in_cksum(ip, sizeof(*ip), 0);
	CPU_STATS_ADD(mib, ipIfStatsHCOutTransmits, 1);
	CPU_STATS_ADD(mib, ipIfStatsHCOutOctets, m->m_len);
	SDT_PROBE6(ip, , , send, m, cs, (uint8_t *)ip, &lo0, ip, ip6);
	return (if_simloop(&lo0, m));
}

__noinline void
ip_input(struct mbuf *m)
{
	struct ip *ip = mtod(m, struct ip *);
	struct ip6_hdr *ip6 = NULL;

	SDT_PROBE6(ip, , , receive, m, NULL, (uint8_t *)ip, m->m_rcvif, ip, ip6);
	CPU_STATS_ADD(mib, ipIfStatsHCInReceives, 1);
	CPU_STATS_ADD(mib, ipIfStatsHCInOctets, m->m_len);
	if (ip->ip_v != IPVERSION || in_cksum(ip, sizeof(*ip), 0) != 0) {
		CPU_STATS_ADD(mib, ipIfStatsInCksumErrs, 1);
		m_freem(m);
	} else if (ip->ip_p == IPPROTO_TCP) {
		CPU_STATS_ADD(mib, ipIfStatsHCInDelivers, 1);
		tcp_input(m);
	} else if (ip->ip_p == IPPROTO_UDP) {
		CPU_STATS_ADD(mib, ipIfStatsHCInDelivers, 1);
		udp_input(m);
	} else {
		CPU_STATS_ADD(mib, ipIfStatsInUnknownProtos, 1);
		m_freem(m);
	}
}
