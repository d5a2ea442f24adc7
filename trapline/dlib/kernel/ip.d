/* Packets of the Internet protocol: the arguments of the ip provider (FreeBSD cddl/lib/libdtrace/ip.d). */

#pragma D depends_on module kernel
#pragma D depends_on library inet.d
#pragma D depends_on library protocols.d

/* Of ifnet's if_flags and inpcb's inp_vflag. */
inline int IFF_LOOPBACK = 0x8;
inline uint8_t INP_IPV4 = 0x01;
inline uint8_t INP_IPV6 = 0x02;

typedef struct pktinfo {
	uintptr_t pkt_addr;	/* of the packet (struct mbuf) */
} pktinfo_t;

typedef struct csinfo {
	uintptr_t cs_addr;	/* of the end of the connection (struct inpcb) */
	uint64_t cs_cid;
	pid_t cs_pid;		/* the process that has its socket */
	int cs_zoneid;
} csinfo_t;

typedef struct ipinfo {
	uint8_t ip_ver;
	uint32_t ip_plength;	/* bytes after the header */
	string ip_saddr;
	string ip_daddr;
} ipinfo_t;

typedef struct ifinfo {
	string if_name;
	int8_t if_local;	/* it leads back to this machine */
	int if_ipstack;
	uintptr_t if_addr;
} ifinfo_t;

typedef struct ipv4info {
	uint8_t ipv4_ver;
	uint8_t ipv4_ihl;	/* bytes of the header */
	uint8_t ipv4_tos;
	uint16_t ipv4_length;
	uint16_t ipv4_ident;
	uint8_t ipv4_flags;
	uint16_t ipv4_offset;
	uint8_t ipv4_ttl;
	uint8_t ipv4_protocol;
	string ipv4_protostr;
	uint16_t ipv4_checksum;
	ipaddr_t ipv4_src;
	ipaddr_t ipv4_dst;
	string ipv4_saddr;
	string ipv4_daddr;
	struct ip *ipv4_hdr;
} ipv4info_t;

typedef struct ipv6info {
	uint8_t ipv6_ver;	/* 0: the packet is not of version 6 */
	uint8_t ipv6_tclass;
	uint32_t ipv6_flow;
	uint16_t ipv6_plen;	/* bytes after the header */
	uint8_t ipv6_nexthdr;
	string ipv6_nextstr;
	uint8_t ipv6_hlim;
	in6_addr_t *ipv6_src;
	in6_addr_t *ipv6_dst;
	string ipv6_saddr;
	string ipv6_daddr;
	struct ip6_hdr *ipv6_hdr;
} ipv6info_t;

translator pktinfo_t < void *p > {
	pkt_addr = (uintptr_t)p;
};

translator csinfo_t < struct inpcb *p > {
	cs_addr = (uintptr_t)p;
	cs_cid = (uint64_t)p;
	cs_pid = p == NULL ? 0 : p->inp_socket->so_pid;
	cs_zoneid = 0;
};

translator ipinfo_t < uint8_t *p > {
	ip_ver = p == NULL ? 0 : ((struct ip *)p)->ip_v;
	ip_plength = p == NULL ? 0 : ntohs(((struct ip *)p)->ip_len) - (((struct ip *)p)->ip_hl << 2);
	ip_saddr = p == NULL ? "<unknown>" : inet_ntoa(&((struct ip *)p)->ip_src.s_addr);
	ip_daddr = p == NULL ? "<unknown>" : inet_ntoa(&((struct ip *)p)->ip_dst.s_addr);
};

translator ifinfo_t < struct ifnet *p > {
	if_name = p == NULL ? "<null>" : stringof(p->if_xname);
	if_local = p == NULL ? 0 : 1; /* lo0 is the only interface */
	if_ipstack = 0;
	if_addr = (uintptr_t)p;
};

translator ipv4info_t < struct ip *p > {
	ipv4_ver = p == NULL ? 0 : p->ip_v;
	ipv4_ihl = p == NULL ? 0 : p->ip_hl << 2;
	ipv4_tos = p == NULL ? 0 : p->ip_tos;
	ipv4_length = p == NULL ? 0 : ntohs(p->ip_len);
	ipv4_ident = p == NULL ? 0 : ntohs(p->ip_id);
	ipv4_flags = p == NULL ? 0 : ntohs(p->ip_off) >> 12;
	ipv4_offset = p == NULL ? 0 : ntohs(p->ip_off) & 0x1fff;
	ipv4_ttl = p == NULL ? 0 : p->ip_ttl;
	ipv4_protocol = p == NULL ? 0 : p->ip_p;
	ipv4_protostr = p == NULL ? "<null>" : protocols[p->ip_p];
	ipv4_checksum = p == NULL ? 0 : ntohs(p->ip_sum);
	ipv4_src = p == NULL ? 0 : p->ip_src.s_addr;
	ipv4_dst = p == NULL ? 0 : p->ip_dst.s_addr;
	ipv4_saddr = p == NULL ? "<null>" : inet_ntoa(&p->ip_src.s_addr);
	ipv4_daddr = p == NULL ? "<null>" : inet_ntoa(&p->ip_dst.s_addr);
	ipv4_hdr = p;
};

translator ipv6info_t < struct ip6_hdr *p > {
	ipv6_ver = p == NULL ? 0 : ntohl(p->ip6_flow) >> 28;
	ipv6_tclass = p == NULL ? 0 : ntohl(p->ip6_flow) >> 20 & 0xff;
	ipv6_flow = p == NULL ? 0 : ntohl(p->ip6_flow) & 0xfffff;
	ipv6_plen = p == NULL ? 0 : ntohs(p->ip6_plen);
	ipv6_nexthdr = p == NULL ? 0 : p->ip6_nxt;
	ipv6_nextstr = p == NULL ? "<null>" : protocols[p->ip6_nxt];
	ipv6_hlim = p == NULL ? 0 : p->ip6_hlim;
	ipv6_src = p == NULL ? 0 : (in6_addr_t *)p->ip6_src;
	ipv6_dst = p == NULL ? 0 : (in6_addr_t *)p->ip6_dst;
	ipv6_saddr = p == NULL ? "<null>" : inet_ntoa6((in6_addr_t *)p->ip6_src);
	ipv6_daddr = p == NULL ? "<null>" : inet_ntoa6((in6_addr_t *)p->ip6_dst);
	ipv6_hdr = p;
};
