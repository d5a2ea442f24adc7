/* echo.ko: /dev/echo gives back what was last written to it (after FreeBSD's share/examples/kld/cdev). */
#include "sys/linker.h"
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/vnode.h"

#define ECHO_SIZE 256

MALLOC_DEFINE(M_ECHO, "echobuf", "what /dev/echo was told");

struct echo_message {
	size_t length;
	char text[ECHO_SIZE];
};

static struct echo_message *echo_message;
static struct cdev *echo_dev;
uint64_t echo_bytes; /* told in all; sumcall.ko reads it */

static struct mtx echo_mtx = MTX_INITIALIZER("echo", MTX_DEF);

size_t
echo_count(size_t n)
{
	mtx_lock(&echo_mtx);
	echo_bytes += n;
	mtx_unlock(&echo_mtx);
	return (n);
}

static int
echo_read(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	size_t offset = uio->uio_offset;

	if (offset >= echo_message->length)
		return (0);
	return (uiomove(echo_message->text + offset, MIN(uio->uio_resid, echo_message->length - offset), uio));
}

static int
echo_write(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	size_t n = MIN(uio->uio_resid, ECHO_SIZE);
	int error = uiomove(echo_message->text, n, uio);

	if (error != 0)
		return (error);
	echo_message->length = echo_count(n);
	uio->uio_resid = 0;
	return (0);
}

static const struct cdevsw echo_cdevsw = { .d_name = "echo", .d_read = echo_read, .d_write = echo_write };

static int
echo_modevent(module_t mod __unused, int type, void *data __unused)
{
	switch (type) {
	case MOD_LOAD:
		echo_message = malloc(sizeof(*echo_message), M_ECHO, M_WAITOK | M_ZERO);
		echo_dev = make_dev(&echo_cdevsw, 4, "echo");
		return (0);
	case MOD_UNLOAD:
		destroy_dev(echo_dev);
		free(echo_message, M_ECHO);
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

static moduledata_t echo_mod = { "echo", echo_modevent, NULL };
DECLARE_MODULE(echo, echo_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);
