/* Addresses of the Internet, as inet_ntop(), inet_ntoa() and inet_ntoa6() take them. */

inline int AF_INET = 2;
inline int AF_INET6 = 28;	/* FreeBSD's, whatever the guest */

typedef uint32_t ipaddr_t;
typedef uint32_t in_addr_t;
typedef struct in6_addr {
	uint8_t s6_addr[16];
} in6_addr_t;
