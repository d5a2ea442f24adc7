/* dtrace.ko: the framework's devices. The framework is the emulator's, which answers their requests. */
#include "sys/dof.h"
#include "sys/linker.h"
#include "sys/systm.h"
#include "sys/vnode.h"

/* Each open is a consumer of its own: its number is kept with the open file. */
static int
dtrace_open(struct cdev *dev __unused, uintptr_t *priv)
{
	*priv = dtrace_dev_open();
	return (0);
}

static void
dtrace_close(struct cdev *dev __unused, uintptr_t priv)
{
	dtrace_dev_close(priv);
}

static int
dtrace_ioctl(struct cdev *dev __unused, uintptr_t priv, uint64_t cmd, void *data)
{
	return (dtrace_dev_ioctl(priv, cmd, data));
}

/* Programs register their USDT probes. */
static int
dtrace_ioctl_helper(struct cdev *dev __unused, uintptr_t priv __unused, uint64_t cmd, void *data)
{
	struct dof_helper *helper = data;
	int generation;

	switch (cmd) {
	case DTRACEHIOC_ADDDOF:
		if ((generation = dtrace_helper_slurp(curproc, helper)) < 0)
			return (EINVAL);
		helper->dofhp_gen = generation;
		return (0);
	case DTRACEHIOC_REMOVE:
		return (dtrace_helper_destroygen(curproc, *(const int *)data) != 0 ? EINVAL : 0);
	default:
		return (ENOTTY);
	}
}

static const struct cdevsw dtrace_cdevsw = { .d_name = "dtrace", .d_open = dtrace_open, .d_close = dtrace_close, .d_ioctl = dtrace_ioctl };
static const struct cdevsw helper_cdevsw = { .d_name = "helper", .d_ioctl = dtrace_ioctl_helper };
static struct cdev *dtrace_dev, *helper_dev;

static int
dtrace_modevent(module_t mod __unused, int type, void *data __unused)
{
	switch (type) {
	case MOD_LOAD:
		dtrace_dev = make_dev(&dtrace_cdevsw, 5, "dtrace/dtrace");
		helper_dev = make_dev(&helper_cdevsw, 6, "dtrace/helper");
		return (0);
	case MOD_QUIESCE:
		return (dtrace_dev->si_threadcount > 0 ? EBUSY : 0);
	case MOD_UNLOAD:
		if (dtrace_dev->si_threadcount > 0)
			return (EBUSY);
		destroy_dev(helper_dev);
		destroy_dev(dtrace_dev);
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

static moduledata_t dtrace_mod = { "dtrace", dtrace_modevent, NULL };
DECLARE_MODULE(dtrace, dtrace_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);
MODULE_DEPEND(dtrace, opensolaris, 1, 1, 1);
