/* Sockets as programs see them (FreeBSD sys/sys/socket.h, sys/netinet/in.h). */
#ifndef SYS_SOCKET_H
#define SYS_SOCKET_H

#include "sys/types.h"

#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define AF_INET 2
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2

#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define INADDR_ANY 0x00000000u
#define INADDR_LOOPBACK 0x7f000001u

/* Every ISA of the kernel's has its low byte first, and not every one has an instruction for this. */
#define htons(x) ((uint16_t)(((x) & 0xff) << 8 | ((x) >> 8 & 0xff)))
#define htonl(x) (((uint32_t)(x) & 0xff) << 24 | ((uint32_t)(x) & 0xff00) << 8 | ((uint32_t)(x) >> 8 & 0xff00) | (uint32_t)(x) >> 24)
#define ntohs(x) htons(x)
#define ntohl(x) htonl(x)

struct in_addr {
	uint32_t s_addr; /* in network order, as every address and port here */
};

struct sockaddr {
	uint8_t sa_len, sa_family;
	char sa_data[14];
};

struct sockaddr_in {
	uint8_t sin_len, sin_family;
	uint16_t sin_port;
	struct in_addr sin_addr;
	char sin_zero[8];
};

#endif
