/* File systems that are mounted (FreeBSD sys/sys/mount.h). */
#ifndef SYS_MOUNT_H
#define SYS_MOUNT_H

#include "sys/types.h"

#define MFSNAMELEN 16
#define MNAMELEN 1024

struct statfs {
	char f_fstypename[MFSNAMELEN];
	char f_mntfromname[MNAMELEN];
	char f_mntonname[MNAMELEN];
};

struct mount {
	struct statfs mnt_stat;
};

#endif
