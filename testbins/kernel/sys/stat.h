/* What stat(2) gives. */
#ifndef SYS_STAT_H
#define SYS_STAT_H

#include "sys/types.h"

#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define S_IFDIR 0040000
#define S_IFREG 0100000
#define S_IFSOCK 0140000
#define S_ISDIR(mode) (((mode) & S_IFMT) == S_IFDIR)
#define S_ISREG(mode) (((mode) & S_IFMT) == S_IFREG)

struct stat {
	ino_t st_ino;
	off_t st_size;
	uint64_t st_mtime; /* virtual nanoseconds since the machine started */
	uint32_t st_nlink;
	uint32_t st_mode;
	uid_t st_uid;
	gid_t st_gid;
	uint32_t st_rdev;
	uint32_t st_blksize;
};

#endif
