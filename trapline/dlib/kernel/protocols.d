/* Protocols over IP by their numbers, and their names (FreeBSD cddl/lib/libdtrace/ip.d). */

#pragma D depends_on module kernel

inline short IPPROTO_IP = 0;
inline short IPPROTO_ICMP = 1;
inline short IPPROTO_IGMP = 2;
inline short IPPROTO_IPV4 = 4;
inline short IPPROTO_TCP = 6;
inline short IPPROTO_UDP = 17;
inline short IPPROTO_IPV6 = 41;
inline short IPPROTO_ROUTING = 43;
inline short IPPROTO_FRAGMENT = 44;
inline short IPPROTO_RSVP = 46;
inline short IPPROTO_GRE = 47;
inline short IPPROTO_ESP = 50;
inline short IPPROTO_AH = 51;
inline short IPPROTO_MOBILE = 55;
inline short IPPROTO_ICMPV6 = 58;
inline short IPPROTO_DSTOPTS = 60;
inline short IPPROTO_ETHERIP = 97;
inline short IPPROTO_PIM = 103;
inline short IPPROTO_IPCOMP = 108;
inline short IPPROTO_SCTP = 132;
inline short IPPROTO_RAW = 255;

inline string protocols[int proto] =
	proto == IPPROTO_IP ? "IP" :
	proto == IPPROTO_ICMP ? "ICMP" :
	proto == IPPROTO_IGMP ? "IGMP" :
	proto == IPPROTO_IPV4 ? "IPV4" :
	proto == IPPROTO_TCP ? "TCP" :
	proto == IPPROTO_UDP ? "UDP" :
	proto == IPPROTO_IPV6 ? "IPV6" :
	proto == IPPROTO_ROUTING ? "ROUTING" :
	proto == IPPROTO_FRAGMENT ? "FRAGMENT" :
	proto == IPPROTO_RSVP ? "RSVP" :
	proto == IPPROTO_GRE ? "GRE" :
	proto == IPPROTO_ESP ? "ESP" :
	proto == IPPROTO_AH ? "AH" :
	proto == IPPROTO_MOBILE ? "MOBILE" :
	proto == IPPROTO_ICMPV6 ? "ICMPV6" :
	proto == IPPROTO_DSTOPTS ? "DSTOPTS" :
	proto == IPPROTO_ETHERIP ? "ETHERIP" :
	proto == IPPROTO_PIM ? "PIM" :
	proto == IPPROTO_IPCOMP ? "IPCOMP" :
	proto == IPPROTO_SCTP ? "SCTP" :
	proto == IPPROTO_RAW ? "RAW" :
	"<unknown>";
