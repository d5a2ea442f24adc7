/* The file table as sysctl kern.file gives it (FreeBSD sys/sys/file.h: struct xfile, with what libprocstat finds out besides). */
#ifndef SYS_XFILE_H
#define SYS_XFILE_H

#include "sys/param.h"
#include "sys/types.h"

/* xf_fd of what a process uses without a descriptor. */
#define XF_TEXT (-1)
#define XF_CDIR (-2)
#define XF_RDIR (-3)

struct xfile {
	pid_t xf_pid;
	uid_t xf_uid;
	int xf_fd;	       /* or XF_* */
	int xf_type;	       /* DTYPE_* */
	int xf_flag;	       /* FREAD, FWRITE */
	uint32_t xf_mode;      /* as st_mode */
	uint64_t xf_fileid;
	uint64_t xf_size;
	uint64_t xf_data;      /* of a pipe: where it is */
	char xf_comm[MAXCOMLEN + 1];
	char xf_device[24];    /* of a device: its name in /dev */
};

#endif
