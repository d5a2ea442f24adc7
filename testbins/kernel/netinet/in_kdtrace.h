/* The probes of the network: what the kernel passes, and what D programs see of it (FreeBSD sys/netinet/in_kdtrace.c). */
#ifndef NETINET_IN_KDTRACE_H
#define NETINET_IN_KDTRACE_H

#include "sys/sdt.h"

#define SDT_XARG3(p, n, cs, x2) \
	SDT_ARG(p, , , n, 0, "void *", "pktinfo_t *"); \
	SDT_ARG(p, , , n, 1, cs, "csinfo_t *"); \
	SDT_ARG(p, , , n, 2, "uint8_t *", x2)

#define SDT_PROBE_DEFINE_IP(n) \
	SDT_PROBE_DEFINEN(6, ip, , , n); \
	SDT_XARG3(ip, n, "struct inpcb *", "ipinfo_t *"); \
	SDT_ARG(ip, , , n, 3, "struct ifnet *", "ifinfo_t *"); \
	SDT_ARG(ip, , , n, 4, "struct ip *", "ipv4info_t *"); \
	SDT_ARG(ip, , , n, 5, "struct ip6_hdr *", "ipv6info_t *")

#define SDT_PROBE_DEFINE_TCP(n) \
	SDT_PROBE_DEFINEN(5, tcp, , , n); \
	SDT_XARG3(tcp, n, "struct tcpcb *", "ipinfo_t *"); \
	SDT_ARG(tcp, , , n, 3, "struct tcpcb *", "tcpsinfo_t *"); \
	SDT_ARG(tcp, , , n, 4, "struct tcphdr *", "tcpinfo_t *")

#define SDT_PROBE_DEFINE_TCP_STATE(n) \
	SDT_PROBE_DEFINEN(6, tcp, , , n); \
	SDT_ARG(tcp, , , n, 0, "void *", NULL); \
	SDT_ARG(tcp, , , n, 1, "struct tcpcb *", "csinfo_t *"); \
	SDT_ARG(tcp, , , n, 2, "void *", NULL); \
	SDT_ARG(tcp, , , n, 3, "struct tcpcb *", "tcpsinfo_t *"); \
	SDT_ARG(tcp, , , n, 4, "void *", NULL); \
	SDT_ARG(tcp, , , n, 5, "int", "tcplsinfo_t *")

#define SDT_PROBE_DEFINE_UDP(n) \
	SDT_PROBE_DEFINEN(5, udp, , , n); \
	SDT_XARG3(udp, n, "struct inpcb *", "ipinfo_t *"); \
	SDT_ARG(udp, , , n, 3, "struct inpcb *", "udpsinfo_t *"); \
	SDT_ARG(udp, , , n, 4, "struct udphdr *", "udpinfo_t *")

#endif
