/* sumcall.ko: a system call of its own, number 210; it needs echo.ko (after FreeBSD's share/examples/kld/syscall). */
#include "sys/linker.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

#define SUMCALL_NUMBER 210 /* the first of those kept for modules */

struct sumcall_args {
	ARG(unsigned long, first)
	ARG(unsigned long, last)
};

extern uint64_t echo_bytes;

uint64_t
sumcall_sum(uint64_t first, uint64_t last)
{
	uint64_t sum = 0;

	for (uint64_t n = first; n <= last; n++)
		sum += n;
	return (sum);
}

static int
sys_sumcall(struct thread *td, struct sumcall_args *uap)
{
	if (uap->last < uap->first)
		return (EINVAL);
	td->td_retval[0] = sumcall_sum(uap->first, uap->last) + echo_bytes;
	return (0);
}

static int
sumcall_modevent(module_t mod __unused, int type, void *data __unused)
{
	switch (type) {
	case MOD_LOAD:
		if (sysent[SUMCALL_NUMBER].sy_call != NULL)
			return (EEXIST);
		sysent[SUMCALL_NUMBER].sy_call = (sy_call_t *)(void *)sys_sumcall;
		sysent[SUMCALL_NUMBER].sy_narg = 2;
		return (0);
	case MOD_UNLOAD:
		sysent[SUMCALL_NUMBER].sy_call = NULL;
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

static moduledata_t sumcall_mod = { "sumcall", sumcall_modevent, NULL };
DECLARE_MODULE(sumcall, sumcall_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);
MODULE_DEPEND(sumcall, echo, 1, 1, 1);
