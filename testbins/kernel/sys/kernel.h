/* What runs at start-up, in order (FreeBSD sys/sys/kernel.h). */
#ifndef SYS_KERNEL_H
#define SYS_KERNEL_H

#include "sys/types.h"

enum sysinit_sub_id {
	SI_SUB_VM,
	SI_SUB_KMEM,
	SI_SUB_INTRINSIC,  /* proc0 */
	SI_SUB_LOCK,
	SI_SUB_VFS,
	SI_SUB_DRIVERS,
	SI_SUB_RANDOM,
	SI_SUB_ROOT,
	SI_SUB_CREATE_INIT,
	SI_SUB_KTHREAD_IDLE,
	SI_SUB_KTHREADS,
	SI_SUB_CLOCKS,
	SI_SUB_LAST = SI_SUB_CLOCKS,
};

enum sysinit_elem_order { SI_ORDER_FIRST, SI_ORDER_SECOND, SI_ORDER_THIRD, SI_ORDER_ANY };

struct sysinit {
	enum sysinit_sub_id subsystem;
	enum sysinit_elem_order order;
	void (*func)(const void *);
	const void *udata;
};

/* A linker set: the pointers end up side by side in one section. */
#define DATA_SET(set, sym) static void const *const __set_##set##_sym_##sym __attribute__((section("set_" #set), used)) = &(sym)
#define SET_DECLARE(set, type) extern type *__start_set_##set[], *__stop_set_##set[]
#define SET_FOREACH(pvar, set) for ((pvar) = __start_set_##set; (pvar) < __stop_set_##set; (pvar)++)

#define SYSINIT(uniquifier, sub, ord, function, data)                                    \
	static const struct sysinit uniquifier##_sys_init = { sub, ord, function, data }; \
	DATA_SET(sysinit_set, uniquifier##_sys_init)

extern int hz;
extern volatile uint64_t ticks;

#endif
