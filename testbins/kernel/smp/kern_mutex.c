/*
 * Mutexes of a kernel for several CPUs (FreeBSD sys/kern/kern_mutex.c). A thread that finds one taken spins while the
 * owner runs on another CPU, and sleeps otherwise.
 */
#include "smp/smp.h"
#include "sys/lockstat.h"
#include "sys/systm.h"

SDT_PROBE_DEFINE1(lockstat, , , adaptive__acquire, "struct mtx *");
SDT_PROBE_DEFINE1(lockstat, , , adaptive__release, "struct mtx *");
SDT_PROBE_DEFINE2(lockstat, , , adaptive__spin, "struct mtx *", "uint64_t");
SDT_PROBE_DEFINE2(lockstat, , , adaptive__block, "struct mtx *", "uint64_t");
SDT_PROBE_DEFINE1(lockstat, , , spin__acquire, "struct mtx *");
SDT_PROBE_DEFINE1(lockstat, , , spin__release, "struct mtx *");
SDT_PROBE_DEFINE2(lockstat, , , spin__spin, "struct mtx *", "uint64_t");

static struct thread *
mtx_owner(const struct mtx *m)
{
	return ((struct thread *)(m->mtx_lock & ~(uintptr_t)MTX_CONTESTED));
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
	return (mtx_owner(m) == curthread);
}

void
mtx_assert(const struct mtx *m, int what)
{
	if (mtx_owned(m) != (what == MA_OWNED))
		panic("mutex %s %sowned", m->lock_object.lo_name, what == MA_OWNED ? "not " : "");
}

/* One wait; says whether it was a sleep. */
static bool
_mtx_wait(struct mtx *m)
{
	struct thread *owner = mtx_owner(m);

	if (owner == NULL || owner->td_state == TDS_RUNNING || m->lock_object.lo_flags & MTX_NOSLEEP) {
		cpu_spinwait();
		return (false);
	}
	if (!atomic_cmpset(&m->mtx_lock, (uintptr_t)owner, (uintptr_t)owner | MTX_CONTESTED) &&
	    m->mtx_lock != ((uintptr_t)owner | MTX_CONTESTED))
		return (false);
	sleepq_add(m, m->lock_object.lo_name, 0);
	sleepq_wait(m);
	return (true);
}

/* The probes are here and not deeper, so that their caller is the function that takes the lock. */
void
__mtx_lock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	uint64_t since = 0;
	bool slept = false;

	if (!atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread)) {
		if (mtx_owned(m)) {
			if (!(m->lock_object.lo_flags & MTX_RECURSE))
				panic("recursion on mutex %s at %s:%d", m->lock_object.lo_name, file, line);
			m->mtx_recurse++;
			curthread->td_locks++;
			return;
		}
		LOCKSTAT_TIME(since);
		do
			slept |= _mtx_wait(m);
		while (!atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread));
		if (slept)
			SDT_PROBE2(lockstat, , , adaptive__block, m, lockstat_nsecs(since));
		else
			SDT_PROBE2(lockstat, , , adaptive__spin, m, lockstat_nsecs(since));
	}
	SDT_PROBE1(lockstat, , , adaptive__acquire, m);
	curthread->td_locks++;
}

void
__mtx_unlock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	if (!mtx_owned(m))
		panic("mutex %s not owned at %s:%d", m->lock_object.lo_name, file, line);
	curthread->td_locks--;
	if (m->mtx_recurse > 0) {
		m->mtx_recurse--;
		return;
	}
	SDT_PROBE1(lockstat, , , adaptive__release, m);
	if (!atomic_cmpset(&m->mtx_lock, (uintptr_t)curthread, MTX_UNOWNED)) {
		__atomic_store_n(&m->mtx_lock, MTX_UNOWNED, __ATOMIC_RELEASE);
		sleepq_broadcast(m);
	}
}

void
__mtx_lock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	uint64_t since = 0;

	if (!atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread)) {
		if (mtx_owned(m))
			panic("recursion on spin lock %s at %s:%d", m->lock_object.lo_name, file, line);
		LOCKSTAT_TIME(since);
		do
			cpu_spinwait();
		while (m->mtx_lock != MTX_UNOWNED || !atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread));
		SDT_PROBE2(lockstat, , , spin__spin, m, lockstat_nsecs(since));
	}
	SDT_PROBE1(lockstat, , , spin__acquire, m);
}

void
__mtx_unlock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	if (!mtx_owned(m))
		panic("spin lock %s not owned at %s:%d", m->lock_object.lo_name, file, line);
	SDT_PROBE1(lockstat, , , spin__release, m);
	__atomic_store_n(&m->mtx_lock, MTX_UNOWNED, __ATOMIC_RELEASE);
}
