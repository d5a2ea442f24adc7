/* /dev/dtrace/helper: programs tell DTrace of the probes they have (FreeBSD sys/cddl/dev/dtrace/dtrace_ioctl.c, dtrace_ioctl_helper). */
#include "sys/dof.h"
#include "sys/systm.h"
#include "sys/vnode.h"

static int
dtrace_ioctl_helper(struct cdev *dev __unused, uint64_t cmd, void *data, struct thread *td)
{
	struct dof_helper helper;
	int error, generation;

	switch (cmd) {
	case DTRACEHIOC_ADDDOF:
		if ((error = copyin(data, &helper, sizeof(helper))) != 0)
			return (error);
		if ((generation = dtrace_helper_slurp(td->td_proc, &helper)) < 0)
			return (EINVAL);
		helper.dofhp_gen = generation;
		return (copyout(&helper, data, sizeof(helper)));
	case DTRACEHIOC_REMOVE:
		if ((error = copyin(data, &generation, sizeof(generation))) != 0)
			return (error);
		return (dtrace_helper_destroygen(td->td_proc, generation) != 0 ? EINVAL : 0);
	default:
		return (ENOTTY);
	}
}

static const struct cdevsw helper_cdevsw = { .d_name = "dtrace/helper", .d_ioctl = dtrace_ioctl_helper };

static void
dtrace_helper_attach(const void *unused __unused)
{
	make_dev(&helper_cdevsw, 6, "dtrace/helper");
}
SYSINIT(dtrace_helper_attach, SI_SUB_ROOT, SI_ORDER_ANY, dtrace_helper_attach, NULL);
