/*
 * Mutexes (FreeBSD sys/kern/kern_mutex.c). The kernel is never interrupted, so one is found
 * taken only when its owner sleeps: then it is an error for spin locks, and a wait for the others.
 */
#include "sys/lockstat.h"
#include "sys/systm.h"

SDT_PROBE_DEFINE1(lockstat, , , adaptive__acquire, "struct mtx *");
SDT_PROBE_DEFINE1(lockstat, , , adaptive__release, "struct mtx *");
SDT_PROBE_DEFINE2(lockstat, , , adaptive__block, "struct mtx *", "uint64_t");
SDT_PROBE_DEFINE1(lockstat, , , spin__acquire, "struct mtx *");
SDT_PROBE_DEFINE1(lockstat, , , spin__release, "struct mtx *");

static uintptr_t
lv_mtx_owner(uintptr_t value)
{
	return (value & ~(uintptr_t)MTX_CONTESTED);
}

void
mtx_init(struct mtx *m, const char *name, const char *type __unused, int opts)
{
	m->lock_object.lo_name = name;
	m->lock_object.lo_flags = opts | MTX_CLASS(opts);
	m->mtx_lock = MTX_UNOWNED;
	m->mtx_recurse = 0;
}

void
mtx_destroy(struct mtx *m)
{
	KASSERT(m->mtx_lock == MTX_UNOWNED, ("mtx_destroy: %s is locked", m->lock_object.lo_name));
	m->lock_object.lo_name = NULL;
}

int
mtx_owned(const struct mtx *m)
{
	return (lv_mtx_owner(m->mtx_lock) == (uintptr_t)curthread);
}

void
mtx_assert(const struct mtx *m, int what)
{
	if (mtx_owned(m) != (what == MA_OWNED))
		panic("mutex %s %sowned", m->lock_object.lo_name, what == MA_OWNED ? "not " : "");
}

/* Returns whether the lock was acquired, and not only recursed; *since: the start of the wait, if it is traced. */
static bool
_mtx_lock_sleep(struct mtx *m, const char *file, int line, uint64_t *since)
{
	if (lv_mtx_owner(m->mtx_lock) == (uintptr_t)curthread) {
		if (!(m->lock_object.lo_flags & MTX_RECURSE))
			panic("recursion on mutex %s at %s:%d", m->lock_object.lo_name, file, line);
		m->mtx_recurse++;
		return (false);
	}
	LOCKSTAT_TIME(*since);
	while (m->mtx_lock != MTX_UNOWNED) {
		m->mtx_lock |= MTX_CONTESTED;
		sleepq_add(m, m->lock_object.lo_name, 0);
		sleepq_wait(m);
	}
	m->mtx_lock = (uintptr_t)curthread;
	return (true);
}

static void
_mtx_unlock_sleep(struct mtx *m)
{
	if (m->mtx_recurse > 0) {
		m->mtx_recurse--;
		return;
	}
	m->mtx_lock = MTX_UNOWNED;
	sleepq_broadcast(m);
}

/* The probes are here and not deeper, so that their caller is the function that takes the lock. */
void
__mtx_lock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	uint64_t since = 0;

	if (m->mtx_lock == MTX_UNOWNED) {
		m->mtx_lock = (uintptr_t)curthread;
		SDT_PROBE1(lockstat, , , adaptive__acquire, m);
	} else if (_mtx_lock_sleep(m, file, line, &since)) {
		SDT_PROBE2(lockstat, , , adaptive__block, m, lockstat_nsecs(since));
		SDT_PROBE1(lockstat, , , adaptive__acquire, m);
	}
	curthread->td_locks++;
}

void
__mtx_unlock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	if (!mtx_owned(m))
		panic("mutex %s not owned at %s:%d", m->lock_object.lo_name, file, line);
	curthread->td_locks--;
	if (m->mtx_recurse == 0)
		SDT_PROBE1(lockstat, , , adaptive__release, m);
	if (m->mtx_lock == (uintptr_t)curthread && m->mtx_recurse == 0)
		m->mtx_lock = MTX_UNOWNED;
	else
		_mtx_unlock_sleep(m);
}

void
__mtx_lock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	if (m->mtx_lock != MTX_UNOWNED)
		panic("spin lock %s held at %s:%d", m->lock_object.lo_name, file, line);
	m->mtx_lock = (uintptr_t)curthread;
	SDT_PROBE1(lockstat, , , spin__acquire, m);
}

void
__mtx_unlock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	if (m->mtx_lock != (uintptr_t)curthread)
		panic("spin lock %s not owned at %s:%d", m->lock_object.lo_name, file, line);
	SDT_PROBE1(lockstat, , , spin__release, m);
	m->mtx_lock = MTX_UNOWNED;
}
