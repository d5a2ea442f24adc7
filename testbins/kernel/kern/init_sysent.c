/* The system call table (FreeBSD sys/kern/init_sysent.c, syscalls.c). */
#include "sys/syscall.h"
#include "sys/sysproto.h"

#define NARG(name) (sizeof(struct name##_args) / sizeof(long))

struct sysent sysent[SYS_MAXSYSCALL] = {
	[0] = { sys_nosys, 0, 0, 0 },
#define SYSCALL(number, name) [number] = { (sy_call_t *)(void *)sys_##name, NARG(name), 0, 0 },
#include "sys/syscalls.def"
#undef SYSCALL
#define NOSYS(number, name) [number] = { sys_nosys, 0, 0, 0 },
#include "sys/nosys.def"
#undef NOSYS
};

const char *const syscallnames[SYS_MAXSYSCALL] = {
	[0] = "nosys",
	[210] = "lkmnosys", /* kept for modules */
#define SYSCALL(number, name) [number] = #name,
#include "sys/syscalls.def"
#undef SYSCALL
#define NOSYS(number, name) [number] = #name,
#include "sys/nosys.def"
#undef NOSYS
};

/* syscall.h, which assembly can read, says the same. */
#define SYSCALL(number, name) _Static_assert(number == SYS_##name, #name);
#include "sys/syscalls.def"
#undef SYSCALL
