/* What getdirentries(2) gives. */
#ifndef SYS_DIRENT_H
#define SYS_DIRENT_H

#include "sys/types.h"

#define DT_FIFO 1
#define DT_CHR 2
#define DT_DIR 4
#define DT_REG 8

struct dirent {
	ino_t d_fileno;
	off_t d_off;	   /* of the next entry */
	uint16_t d_reclen;
	uint8_t d_type;
	uint8_t d_pad0;
	uint16_t d_namlen;
	uint16_t d_pad1;
	char d_name[256]; /* only d_namlen + 1 of it, rounded up to 8, are there */
};
#define DIRENT_RECLEN(namlen) ((offsetof(struct dirent, d_name) + (namlen) + 1 + 7) & ~7u)

#endif
