/* mmap(2). FreeBSD's values. */
#ifndef SYS_MMAN_H
#define SYS_MMAN_H

#define PROT_NONE 0
#ifndef PROT_READ
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#endif
#define MAP_SHARED 0x0001
#define MAP_PRIVATE 0x0002
#define MAP_FIXED 0x0010
#define MAP_STACK 0x0400
#define MAP_ANON 0x1000

#endif
