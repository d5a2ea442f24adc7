/* opensolaris.ko: what DTrace brought with it from its home; nothing of it is needed here. */
#include "sys/linker.h"
#include "sys/systm.h"

static int
opensolaris_modevent(module_t mod __unused, int type, void *data __unused)
{
	return (type == MOD_LOAD || type == MOD_UNLOAD ? 0 : EOPNOTSUPP);
}

static moduledata_t opensolaris_mod = { "opensolaris", opensolaris_modevent, NULL };
DECLARE_MODULE(opensolaris, opensolaris_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);
