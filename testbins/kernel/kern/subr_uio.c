/* Moving the bytes of a read or write (FreeBSD sys/kern/subr_uio.c). */
#include "sys/systm.h"
#include "sys/uio.h"

int
uiomove(void *cp, size_t n, struct uio *uio)
{
	int error = 0;

	n = MIN(n, uio->uio_resid);
	if (uio->uio_segflg == UIO_SYSSPACE)
		memmove(uio->uio_rw == UIO_READ ? uio->uio_base : cp, uio->uio_rw == UIO_READ ? cp : uio->uio_base, n);
	else if (uio->uio_rw == UIO_READ)
		error = copyout(cp, uio->uio_base, n);
	else
		error = copyin(uio->uio_base, cp, n);
	if (error != 0)
		return (error);
	uio->uio_base = (char *)uio->uio_base + n;
	uio->uio_offset += n;
	uio->uio_resid -= n;
	return (0);
}
