/* One read or write, wherever the bytes are (FreeBSD sys/sys/uio.h). */
#ifndef SYS_UIO_H
#define SYS_UIO_H

#include "sys/types.h"

enum uio_rw { UIO_READ, UIO_WRITE };
enum uio_seg { UIO_USERSPACE, UIO_SYSSPACE };

struct uio {
	void *uio_base;
	off_t uio_offset;
	size_t uio_resid;
	enum uio_seg uio_segflg;
	enum uio_rw uio_rw;
};

int uiomove(void *cp, size_t n, struct uio *uio);

#endif
