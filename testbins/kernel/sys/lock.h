/* Locks: mutexes and shared/exclusive locks (FreeBSD sys/sys/mutex.h, sx.h). */
#ifndef SYS_LOCK_H
#define SYS_LOCK_H

#include "sys/types.h"

struct thread;

struct lock_object {
	const char *lo_name;
	uint32_t lo_flags;	/* the options it was made with, and its class: an index of FreeBSD's lock_classes[] */
};

#define LO_CLASSSHIFT 24
#define LO_CLASS_MTX_SPIN (0 << LO_CLASSSHIFT)
#define LO_CLASS_MTX_SLEEP (1 << LO_CLASSSHIFT)
#define LO_CLASS_SX (2 << LO_CLASSSHIFT)

/* mtx_lock: the owner, 0 if unowned; the low bit is set if threads wait. */
struct mtx {
	struct lock_object lock_object;
	volatile uintptr_t mtx_lock;
	int mtx_recurse;
};

#define MTX_DEF 0x0
#define MTX_SPIN 0x1
#define MTX_RECURSE 0x4
#define MTX_UNOWNED 0x0
#define MTX_CONTESTED 0x1
#define MTX_CLASS(opts) ((opts) & MTX_SPIN ? LO_CLASS_MTX_SPIN : LO_CLASS_MTX_SLEEP)
#define MTX_INITIALIZER(name, opts) { .lock_object = { .lo_name = (name), .lo_flags = (opts) | MTX_CLASS(opts) } }
#define MA_OWNED 1
#define MA_NOTOWNED 2

void mtx_init(struct mtx *m, const char *name, const char *type, int opts);
void mtx_destroy(struct mtx *m);
void __mtx_lock_flags(struct mtx *m, int opts, const char *file, int line);
void __mtx_unlock_flags(struct mtx *m, int opts, const char *file, int line);
void __mtx_lock_spin_flags(struct mtx *m, int opts, const char *file, int line);
void __mtx_unlock_spin_flags(struct mtx *m, int opts, const char *file, int line);
int mtx_owned(const struct mtx *m);
void mtx_assert(const struct mtx *m, int what);
#define mtx_lock(m) __mtx_lock_flags(m, 0, __FILE__, __LINE__)
#define mtx_unlock(m) __mtx_unlock_flags(m, 0, __FILE__, __LINE__)
#define mtx_lock_spin(m) __mtx_lock_spin_flags(m, 0, __FILE__, __LINE__)
#define mtx_unlock_spin(m) __mtx_unlock_spin_flags(m, 0, __FILE__, __LINE__)

/* May be held asleep. sx_owner is NULL while shared. */
struct sx {
	struct lock_object lock_object;
	struct thread *sx_owner;
	int sx_shared;
	int sx_waiters;
};

#define SX_INITIALIZER(name) { .lock_object = { .lo_name = (name), .lo_flags = LO_CLASS_SX } }

void sx_init(struct sx *sx, const char *description);
void sx_destroy(struct sx *sx);
int _sx_xlock(struct sx *sx, const char *file, int line);
int _sx_slock(struct sx *sx, const char *file, int line);
void _sx_xunlock(struct sx *sx, const char *file, int line);
void _sx_sunlock(struct sx *sx, const char *file, int line);
int sx_xlocked(const struct sx *sx);
#define sx_xlock(sx) _sx_xlock(sx, __FILE__, __LINE__)
#define sx_slock(sx) _sx_slock(sx, __FILE__, __LINE__)
#define sx_xunlock(sx) _sx_xunlock(sx, __FILE__, __LINE__)
#define sx_sunlock(sx) _sx_sunlock(sx, __FILE__, __LINE__)

#endif
