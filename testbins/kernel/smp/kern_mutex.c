/*
 * Mutexes of a kernel for several CPUs (FreeBSD sys/kern/kern_mutex.c). A thread that finds one taken spins while the
 * owner runs on another CPU, and sleeps otherwise. At each operation another CPU may get its turn (gate_turn).
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

/* Whether a thread that waits for a mutex of this owner spins: the owner is about to give it back. */
static inline bool
mtx_spins(const struct mtx *m, const struct thread *owner)
{
	return (owner == NULL || owner->td_state == TDS_RUNNING || m->lock_object.lo_flags & MTX_NOSLEEP);
}

/* Sleeps until the mutex is given back, if it still has this owner. */
static bool
_mtx_lock_sleep(struct mtx *m, struct thread *owner)
{
	uintptr_t contested = (uintptr_t)owner | MTX_CONTESTED;

	if (!atomic_cmpset(&m->mtx_lock, (uintptr_t)owner, contested) && m->mtx_lock != contested)
		return (false);
	sleepq_add(m, m->lock_object.lo_name, 0);
	sleepq_wait(m);
	return (true);
}

enum mtx_wait { MTX_RECURSED, MTX_SPUN, MTX_SLEPT };

/* Takes a mutex that was not free; *since: the start of the wait, if it is traced. */
static enum mtx_wait __noinline
_mtx_lock_hard(struct mtx *m, const char *file, int line, uint64_t *since)
{
	enum mtx_wait wait = MTX_SPUN;

	if (mtx_owned(m)) {
		if (!(m->lock_object.lo_flags & MTX_RECURSE))
			panic("recursion on mutex %s at %s:%d", m->lock_object.lo_name, file, line);
		m->mtx_recurse++;
		return (MTX_RECURSED);
	}
	LOCKSTAT_TIME(*since);
	do {
		struct thread *owner = mtx_owner(m);

		if (mtx_spins(m, owner))
			cpu_spinwait();
		else if (_mtx_lock_sleep(m, owner))
			wait = MTX_SLEPT;
	} while (m->mtx_lock != MTX_UNOWNED || !atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread));
	return (wait);
}

/*
 * The probes are here and not deeper, so that their caller is the function that takes the lock. Every way through the
 * function has sites of its own: the compiler would copy a site that two of them share.
 */
void
__mtx_lock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	uint64_t since = 0;

	gate_turn();
	curthread->td_locks++;
	if (atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread)) {
		SDT_PROBE1(lockstat, , , adaptive__acquire, m);
		return;
	}
	switch (_mtx_lock_hard(m, file, line, &since)) {
	case MTX_SPUN:
		SDT_PROBE2(lockstat, , , adaptive__spin, m, lockstat_nsecs(since));
		SDT_PROBE1(lockstat, , , adaptive__acquire, m);
		return;
	case MTX_SLEPT:
		SDT_PROBE2(lockstat, , , adaptive__block, m, lockstat_nsecs(since));
		SDT_PROBE1(lockstat, , , adaptive__acquire, m);
		return;
	case MTX_RECURSED:
		return;
	}
}

void
__mtx_unlock_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	gate_turn();
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

static void __noinline
_mtx_lock_spin(struct mtx *m, const char *file, int line, uint64_t *since)
{
	if (mtx_owned(m))
		panic("recursion on spin lock %s at %s:%d", m->lock_object.lo_name, file, line);
	LOCKSTAT_TIME(*since);
	do
		cpu_spinwait();
	while (m->mtx_lock != MTX_UNOWNED || !atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread));
}

void
__mtx_lock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	uint64_t since = 0;

	gate_turn();
	if (atomic_cmpset(&m->mtx_lock, MTX_UNOWNED, (uintptr_t)curthread)) {
		SDT_PROBE1(lockstat, , , spin__acquire, m);
		return;
	}
	_mtx_lock_spin(m, file, line, &since);
	SDT_PROBE2(lockstat, , , spin__spin, m, lockstat_nsecs(since));
	SDT_PROBE1(lockstat, , , spin__acquire, m);
}

void
__mtx_unlock_spin_flags(struct mtx *m, int opts __unused, const char *file, int line)
{
	gate_turn();
	if (!mtx_owned(m))
		panic("spin lock %s not owned at %s:%d", m->lock_object.lo_name, file, line);
	SDT_PROBE1(lockstat, , , spin__release, m);
	__atomic_store_n(&m->mtx_lock, MTX_UNOWNED, __ATOMIC_RELEASE);
}
