/* Datagrams: the arguments of the udp provider (FreeBSD cddl/lib/libdtrace/udp.d). */

#pragma D depends_on module kernel
#pragma D depends_on library ip.d

typedef struct udpsinfo {
	uintptr_t udps_addr;
	uint16_t udps_lport;
	uint16_t udps_rport;
	string udps_laddr;
	string udps_raddr;
} udpsinfo_t;

typedef struct udpinfo {
	uint16_t udp_sport;
	uint16_t udp_dport;
	uint16_t udp_length;	/* with its header */
	uint16_t udp_checksum;
	struct udphdr *udp_hdr;
} udpinfo_t;

translator udpsinfo_t < struct inpcb *p > {
	udps_addr = (uintptr_t)p;
	udps_lport = p == NULL ? 0 : ntohs(p->inp_lport);
	udps_rport = p == NULL ? 0 : ntohs(p->inp_fport);
	udps_laddr = p == NULL ? "<unknown>" : inet_ntoa(&p->inp_laddr.s_addr);
	udps_raddr = p == NULL ? "<unknown>" : inet_ntoa(&p->inp_faddr.s_addr);
};

translator udpinfo_t < struct udphdr *p > {
	udp_sport = p == NULL ? 0 : ntohs(p->uh_sport);
	udp_dport = p == NULL ? 0 : ntohs(p->uh_dport);
	udp_length = p == NULL ? 0 : ntohs(p->uh_ulen);
	udp_checksum = p == NULL ? 0 : ntohs(p->uh_sum);
	udp_hdr = p;
};
