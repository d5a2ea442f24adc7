/* Locks for one writer or many readers (FreeBSD lib/libthr/thread/thr_rwlock.c), with its probes. */
#include "thr_private.h"
#include "usdt.h"

#define WRITER 0xffffffffu

int
pthread_rwlock_init(pthread_rwlock_t *lock, const void *attributes __unused)
{
	*lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	return (0);
}

int
pthread_rwlock_destroy(pthread_rwlock_t *lock)
{
	return (lock->state != 0 ? EBUSY : 0);
}

/* Takes the lock if that can be done at once; else *seen is what was in the way. */
static bool
rwlock_try(pthread_rwlock_t *lock, bool writer, uint32_t *seen)
{
	do {
		*seen = lock->state;
		if (writer ? *seen != 0 : *seen == WRITER)
			return (false);
	} while (!atomic_cmpset_acq_32(&lock->state, *seen, writer ? WRITER : *seen + 1));
	if (writer)
		lock->owner = pthread_self();
	return (true);
}

static void
rwlock_wait(pthread_rwlock_t *lock, bool writer, uint32_t seen)
{
	do {
		__atomic_add_fetch(&lock->waiters, 1, __ATOMIC_SEQ_CST);
		_thr_umtx_wait(&lock->state, seen);
		__atomic_sub_fetch(&lock->waiters, 1, __ATOMIC_SEQ_CST);
	} while (!rwlock_try(lock, writer, &seen));
}

static int __probed
rwlock_lock_common(pthread_rwlock_t *lock, bool writer)
{
	uint32_t seen;

	if (!rwlock_try(lock, writer, &seen)) {
		if (seen == WRITER && lock->owner == pthread_self()) {
			USDT3(rwlock_lock_common, plockstat, rw__error, void *, lock, int, writer, int, EDEADLK);
			return (EDEADLK);
		}
		USDT2(rwlock_lock_common, plockstat, rw__block, void *, lock, int, writer);
		rwlock_wait(lock, writer, seen);
		USDT3(rwlock_lock_common, plockstat, rw__blocked, void *, lock, int, writer, int, 1);
	}
	USDT2(rwlock_lock_common, plockstat, rw__acquire, void *, lock, int, writer);
	return (0);
}

int
pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	return (rwlock_lock_common(lock, false));
}

int
pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	return (rwlock_lock_common(lock, true));
}

int __probed
pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	bool writer = lock->state == WRITER;

	if (lock->state == 0 || (writer && lock->owner != pthread_self())) {
		USDT3(pthread_rwlock_unlock, plockstat, rw__error, void *, lock, int, writer, int, EPERM);
		return (EPERM);
	}
	if (writer) {
		lock->owner = NULL;
		__atomic_store_n(&lock->state, 0, __ATOMIC_SEQ_CST);
	} else
		__atomic_sub_fetch(&lock->state, 1, __ATOMIC_SEQ_CST);
	if (lock->waiters != 0)
		_thr_umtx_wake(&lock->state, UINT64_MAX);
	USDT2(pthread_rwlock_unlock, plockstat, rw__release, void *, lock, int, writer);
	return (0);
}
