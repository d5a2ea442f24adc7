/* Structures whose size differs between Linux and FreeBSD (linux/socket.h). */

typedef unsigned short sa_family_t;
