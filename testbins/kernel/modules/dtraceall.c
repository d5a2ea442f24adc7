/* dtraceall.ko: all of DTrace (FreeBSD sys/cddl/dev/dtrace/dtraceall.c). */
#include "sys/linker.h"
#include "sys/systm.h"

static int
dtraceall_modevent(module_t mod __unused, int type, void *data __unused)
{
	return (type == MOD_LOAD || type == MOD_UNLOAD ? 0 : EOPNOTSUPP);
}

static moduledata_t dtraceall_mod = { "dtraceall", dtraceall_modevent, NULL };
DECLARE_MODULE(dtraceall, dtraceall_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);
MODULE_DEPEND(dtraceall, opensolaris, 1, 1, 1);
MODULE_DEPEND(dtraceall, dtrace, 1, 1, 1);
MODULE_DEPEND(dtraceall, dtmalloc, 1, 1, 1);
MODULE_DEPEND(dtraceall, fbt, 1, 1, 1);
MODULE_DEPEND(dtraceall, fasttrap, 1, 1, 1);
#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)
MODULE_DEPEND(dtraceall, kinst, 1, 1, 1);
#endif
MODULE_DEPEND(dtraceall, profile, 1, 1, 1);
MODULE_DEPEND(dtraceall, sdt, 1, 1, 1);
MODULE_DEPEND(dtraceall, systrace, 1, 1, 1);
