/* Addresses of the Internet, as inet_ntop(), inet_ntoa() and inet_ntoa6() take them. */

inline int AF_INET = 2;
inline int AF_INET6 = 28;	/* FreeBSD's, whatever the guest */

typedef unsigned int ipaddr_t;
typedef unsigned int in_addr_t;
/* With the names that the members have on FreeBSD and on illumos. */
typedef struct in6_addr {
	union {
		unsigned char s6_addr[16];
		union {
			uint8_t __u6_addr8[16];
			uint16_t __u6_addr16[8];
			uint32_t __u6_addr32[4];
		} __u6_addr;
		union {
			uint8_t _S6_u8[16];
			uint32_t _S6_u32[4];
		} _S6_un;
	};
} in6_addr_t;
typedef unsigned short in_port_t;
