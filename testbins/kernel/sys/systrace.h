/* The hooks of the syscall provider (FreeBSD sys/sys/sysent.h, sys/kern/subr_syscall.c). */
#ifndef SYS_SYSTRACE_H
#define SYS_SYSTRACE_H

#include "sys/proc.h"
#include "sys/sysproto.h"
#include "sys/traced.h"

enum systrace_probe_t { SYSTRACE_ENTRY, SYSTRACE_RETURN };

/* The types of a system call's arguments and of its result, as C writes them; NULL ends the arguments. */
struct systrace_argdesc {
	uintptr_t code;
	const char *result;
	const char *args[6];
};

extern volatile bool systrace_enabled; /* a probe of a system call is on */
extern const struct systrace_argdesc systrace_argdescs[]; /* ended by code 0 */

void systrace_args(unsigned code, const void *params, uint64_t *uarg, int *n_args);
typedef void systrace_probe_func_t(struct syscall_args *sa, enum systrace_probe_t type, int retval);
extern systrace_probe_func_t *systrace_probe_func; /* systrace.ko's */

#define SYSTRACE(sa, type, retval)                                                                                \
	TRACED(TRACED_TEST8(systrace_enabled),                                                                    \
	    if (((type) == SYSTRACE_ENTRY ? (sa)->callp->sy_entry : (sa)->callp->sy_return) != 0)                 \
		(*systrace_probe_func)(sa, type, (int)TRACED_VALUE(retval));)

#endif
