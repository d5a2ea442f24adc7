/* systrace.ko: the kernel's half of the syscall provider (FreeBSD sys/cddl/dev/systrace/systrace.c). */
#include "dtrace_provider.h"
#include "sys/systm.h"
#include "sys/systrace.h"

/*
 * A probe of a system call fires. At entry the arguments past the fifth are left where the provider finds them: on this
 * stack. At return both of the first two are the result.
 */
static void
systrace_probe(struct syscall_args *sa, enum systrace_probe_t type, int retval)
{
	struct thread *td = curthread;
	uint64_t uargs[nitems(sa->args)] = { 0 };
	uint32_t id;
	int n_args;

	if (type == SYSTRACE_ENTRY) {
		id = sa->callp->sy_entry;
		systrace_args(sa->code, sa->args, uargs, &n_args);
		td->td_systrace_args = uargs;
	} else {
		id = sa->callp->sy_return;
		td->td_systrace_args = NULL;
		uargs[0] = uargs[1] = retval;
	}
	if (id != 0)
		dtrace_probe(id, uargs[0], uargs[1], uargs[2], uargs[3], uargs[4]);
}

static int
systrace_modevent(module_t mod __unused, int type, void *data __unused)
{
	switch (type) {
	case MOD_LOAD:
		systrace_probe_func = systrace_probe;
		return (0);
	case MOD_UNLOAD:
		systrace_probe_func = NULL;
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

DTRACE_PROVIDER(systrace, systrace_modevent);
