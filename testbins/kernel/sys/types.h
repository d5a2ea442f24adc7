/* Integer types, and the small words every file uses. */
#ifndef SYS_TYPES_H
#define SYS_TYPES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long vaddr_t; /* virtual address, kernel or user */
typedef unsigned long paddr_t; /* physical address: RAM is at most 1 GiB */
typedef long ssize_t;
typedef int64_t off_t;
typedef int32_t pid_t;
typedef int32_t lwpid_t;
typedef unsigned int u_int;
typedef uint32_t uid_t;
typedef uint32_t gid_t;
typedef uint16_t mode_t;
typedef uint64_t ino_t;
typedef int64_t sbintime_t;
typedef int64_t time_t;

#define nitems(a) (sizeof(a) / sizeof((a)[0]))
#define roundup2(x, y) (((x) + (y) - 1) & ~((uint64_t)(y) - 1))
#define rounddown2(x, y) ((x) & ~((uint64_t)(y) - 1))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A function a tracer looks for keeps a body of its own. */
#define __noinline __attribute__((noinline))
#define __dead2 __attribute__((noreturn))
#define __unused __attribute__((unused))
#define __printflike(f, a) __attribute__((format(printf, f, a)))

#endif
