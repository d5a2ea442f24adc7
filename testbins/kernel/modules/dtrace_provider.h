/* What a provider's file says of itself. FBT leaves files alone that depend on dtrace. */
#ifndef DTRACE_PROVIDER_H
#define DTRACE_PROVIDER_H

#include "sys/linker.h"
#include "sys/systm.h"

#define DTRACE_PROVIDER(name, modevent)                                     \
	static moduledata_t name##_mod = { #name, modevent, NULL };         \
	DECLARE_MODULE(name, name##_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);     \
	MODULE_DEPEND(name, dtrace, 1, 1, 1);                               \
	MODULE_DEPEND(name, opensolaris, 1, 1, 1)

/* A provider whose work is all the emulator's: as far as the kernel goes there is nothing to load. */
#define DTRACE_HOST_PROVIDER(name)                                          \
	static int name##_modevent(module_t mod __unused, int type, void *data __unused) \
	{                                                                   \
		return (type == MOD_LOAD || type == MOD_UNLOAD ? 0 : EOPNOTSUPP); \
	}                                                                   \
	DTRACE_PROVIDER(name, name##_modevent)

#endif
