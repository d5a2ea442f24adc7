/* /dev/random, getrandom(2), and random numbers for the kernel (FreeBSD sys/dev/random/randomdev.c, sys_getrandom.c). */
#include "sys/random.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vnode.h"

#define RANDOM_CHUNK 256
#define GETRANDOM_MAX 4096

/* Random bytes for the kernel. */
void
read_random(void *buf, unsigned len)
{
	random_fortuna_pre_read();
	random_fortuna_read(buf, len);
}

static int
read_random_uio(struct uio *uio)
{
	uint8_t buffer[RANDOM_CHUNK];
	size_t n;
	int error = 0;

	random_fortuna_pre_read();
	while (uio->uio_resid > 0 && error == 0) {
		n = MIN(uio->uio_resid, RANDOM_CHUNK);
		random_fortuna_read(buffer, n);
		error = uiomove(buffer, n, uio);
	}
	return (error);
}

static int
randomdev_read(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	return (read_random_uio(uio));
}

/* Written bytes are an event like any other. */
static int
randomdev_write(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	uint32_t entropy[HARVESTSIZE];
	int error = 0;

	while (uio->uio_resid > 0 && error == 0) {
		size_t n = MIN(uio->uio_resid, sizeof(entropy));

		if ((error = uiomove(entropy, n, uio)) == 0)
			random_harvest_queue(entropy, n, RANDOM_CACHED);
	}
	return (error);
}

static const struct cdevsw random_cdevsw = { .d_name = "random", .d_read = randomdev_read, .d_write = randomdev_write };

static void
random_modevent(const void *unused __unused)
{
	make_dev(&random_cdevsw, 4, "random");
	make_dev(&random_cdevsw, 5, "urandom");
}
SYSINIT(random_modevent, SI_SUB_ROOT, SI_ORDER_ANY, random_modevent, NULL);

static int
kern_getrandom(struct thread *td, void *user_buf, size_t buflen)
{
	struct uio uio = { user_buf, 0, MIN(buflen, GETRANDOM_MAX), UIO_USERSPACE, UIO_READ };
	int error = read_random_uio(&uio);

	td->td_retval[0] = MIN(buflen, GETRANDOM_MAX) - uio.uio_resid;
	return (error);
}

int
sys_getrandom(struct thread *td, struct getrandom_args *uap)
{
	return (kern_getrandom(td, uap->buf, uap->buflen));
}
