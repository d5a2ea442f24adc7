/* Devices and their names (FreeBSD sys/kern/kern_conf.c, sys/dev/null/null.c, tty_cons.c). */
#include "sys/malloc.h"
#include "sys/random.h"
#include "sys/systm.h"
#include "sys/vnode.h"

/* Makes /dev/name; the root file system must be there. */
struct cdev *
make_dev(const struct cdevsw *devsw, uint32_t unit, const char *name)
{
	struct cdev *dev = malloc(sizeof(*dev), M_DEVBUF, M_WAITOK);
	char path[64];
	struct vnode *vp;

	*dev = (struct cdev){ .si_devsw = devsw, .si_name = name, .si_unit = unit };
	snprintf(path, sizeof(path), "/dev/%s", name);
	if (memfs_mkpath(path, VCHR, 0666, &vp) != 0)
		panic("cannot make %s", path);
	vp->v_rdev = dev;
	return (dev);
}

/* Removes the name at once; open files of the device get ENXIO from now on. */
void
destroy_dev(struct cdev *dev)
{
	char path[64];
	struct vnode *vp;

	snprintf(path, sizeof(path), "/dev/%s", dev->si_name);
	if (memfs_rmpath(path, &vp) != 0)
		panic("cannot remove %s", path);
	vp->v_rdev = NULL;
	vrele(vp);
	free(dev, M_DEVBUF);
}

#define BUFFER 256 /* bytes moved at once */

static int
null_read(struct cdev *dev __unused, struct uio *uio __unused, int ioflag __unused)
{
	return (0);
}

static int
null_write(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	uio->uio_resid = 0;
	return (0);
}

static int
zero_read(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	static const char zbuf[PAGE_SIZE];
	int error = 0;

	while (uio->uio_resid > 0 && error == 0)
		error = uiomove((void *)zbuf, sizeof(zbuf), uio);
	return (error);
}

static int
full_write(struct cdev *dev __unused, struct uio *uio __unused, int ioflag __unused)
{
	return (ENOSPC);
}

/* A read gives what there is, at most a buffer; nothing at the end of the input. */
static int
cnread(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	char buffer[BUFFER];
	size_t n = cngets(buffer, MIN(uio->uio_resid, BUFFER));

	random_harvest_queue(&n, sizeof(n), RANDOM_KEYBOARD);
	return (uiomove(buffer, n, uio));
}

static int
cnwrite(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	char buffer[BUFFER];
	size_t n;
	int error;

	while (uio->uio_resid > 0) {
		n = MIN(uio->uio_resid, BUFFER);
		if ((error = uiomove(buffer, n, uio)) != 0)
			return (error);
		cnputs(buffer, n);
	}
	return (0);
}

static const struct cdevsw null_cdevsw = { .d_name = "null", .d_read = null_read, .d_write = null_write };
static const struct cdevsw zero_cdevsw = { .d_name = "zero", .d_read = zero_read, .d_write = null_write };
static const struct cdevsw full_cdevsw = { .d_name = "full", .d_read = zero_read, .d_write = full_write };
static const struct cdevsw cn_cdevsw = { .d_name = "console", .d_read = cnread, .d_write = cnwrite };

static void
dev_modevent(const void *unused __unused)
{
	make_dev(&null_cdevsw, 0, "null");
	make_dev(&zero_cdevsw, 1, "zero");
	make_dev(&full_cdevsw, 2, "full");
	make_dev(&cn_cdevsw, 3, "console");
}
SYSINIT(dev_modevent, SI_SUB_ROOT, SI_ORDER_ANY, dev_modevent, NULL);
