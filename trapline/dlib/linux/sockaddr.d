/* What Linux has in another size than FreeBSD (linux/socket.h). */

typedef unsigned short sa_family_t;
