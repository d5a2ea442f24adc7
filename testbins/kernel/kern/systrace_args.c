/* What the arguments of each system call are (FreeBSD's generated sys/kern/systrace_args.c). */
#include "sys/syscall.h"
#include "sys/systm.h"
#include "sys/systrace.h"

volatile bool systrace_enabled;
systrace_probe_func_t *systrace_probe_func;

/* The arguments of a call as 64-bit words: signed ones sign-extended. */
void
systrace_args(unsigned code, const void *params, uint64_t *uarg, int *n_args)
{
	int a = 0;

#pragma GCC diagnostic ignored "-Wpointer-to-int-cast" /* ILP32: sign-extended, as FreeBSD's (intptr_t) */

#undef ARG
#define ARG(type, name) uarg[a++] = (uint64_t)p->name;
#define SYSTRACE_ARGS(name, ...)                                              \
	case SYS_##name: {                                                    \
		const struct name##_args *p __unused = params; /* may have none */ \
		__VA_ARGS__                                                   \
		break;                                                        \
	}
	switch (code) {
#include "systrace_args.h"
	}
#undef SYSTRACE_ARGS
#undef ARG
	*n_args = a;
}


const struct systrace_argdesc systrace_argdescs[] = {
#define ARG(type, name) #type,
#define RESULT(name) \
	(SYS_##name == SYS_exit ? "void" : SYS_##name == SYS_read || SYS_##name == SYS_write || SYS_##name == SYS_getdirentries || \
	 SYS_##name == SYS_getrandom ? "ssize_t" : SYS_##name == SYS_lseek ? "off_t" : \
	 SYS_##name == SYS_mmap || SYS_##name == SYS_break ? "void *" : "int")
#define SYSTRACE_ARGS(name, ...) { SYS_##name, RESULT(name), { __VA_ARGS__ } },
#include "systrace_args.h"
	{ 0, NULL, { NULL } },
};
