/* Addresses of the Internet, as inet_ntop(), inet_ntoa() and inet_ntoa6() take them. */

inline int AF_INET = 2;
inline int AF_INET6 = 28;	/* FreeBSD's, whatever the guest */

typedef unsigned int ipaddr_t;
typedef unsigned int in_addr_t;
typedef struct in6_addr {
	unsigned char s6_addr[16];
} in6_addr_t;
