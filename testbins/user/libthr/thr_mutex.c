/* Mutexes (FreeBSD lib/libthr/thread/thr_mutex.c), with its probes. */
#include "thr_private.h"
#include "usdt.h"

#define MUTEX_ADAPTIVE_SPINS 2000

int
pthread_mutex_init(pthread_mutex_t *mutex, int type)
{
	*mutex = (pthread_mutex_t){ .type = type };
	return (0);
}

int
pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	return (mutex->lock != 0 ? EBUSY : 0);
}

/* An adaptive one is looked at a while before the thread sleeps; how many times is told. */
static bool __probed
mutex_spin(pthread_mutex_t *mutex, int *spins)
{
	bool success = false;

	USDT1(mutex_spin, plockstat, mutex__spin, void *, mutex);
	while (*spins < MUTEX_ADAPTIVE_SPINS && !success) {
		(*spins)++;
		success = mutex->lock == 0 && atomic_cmpset_acq_32(&mutex->lock, 0, 1);
	}
	USDT3(mutex_spin, plockstat, mutex__spun, void *, mutex, int, success, int, *spins);
	return (success);
}

static void __probed
mutex_lock_sleep(pthread_mutex_t *mutex)
{
	int spins = 0;

	if (mutex->type != PTHREAD_MUTEX_ADAPTIVE_NP || !mutex_spin(mutex, &spins)) {
		USDT1(mutex_lock_sleep, plockstat, mutex__block, void *, mutex);
		while (__atomic_exchange_n(&mutex->lock, 2, __ATOMIC_ACQUIRE) != 0)
			_thr_umtx_wait(&mutex->lock, 2);
		USDT2(mutex_lock_sleep, plockstat, mutex__blocked, void *, mutex, int, 1);
	}
	mutex->owner = pthread_self();
	USDT3(mutex_lock_sleep, plockstat, mutex__acquire, void *, mutex, int, 0, int, spins);
}

static int __probed
mutex_self_lock(pthread_mutex_t *mutex)
{
	if (mutex->type == PTHREAD_MUTEX_RECURSIVE) {
		mutex->count++;
		USDT3(mutex_self_lock, plockstat, mutex__acquire, void *, mutex, int, 1, int, 0);
		return (0);
	}
	USDT2(mutex_self_lock, plockstat, mutex__error, void *, mutex, int, EDEADLK);
	return (EDEADLK);
}

int __probed
pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (atomic_cmpset_acq_32(&mutex->lock, 0, 1)) {
		mutex->owner = pthread_self();
		USDT3(pthread_mutex_lock, plockstat, mutex__acquire, void *, mutex, int, 0, int, 0);
		return (0);
	}
	if (mutex->owner == pthread_self() && mutex->type != PTHREAD_MUTEX_NORMAL)
		return (mutex_self_lock(mutex));
	mutex_lock_sleep(mutex);
	return (0);
}

int __probed
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	if (atomic_cmpset_acq_32(&mutex->lock, 0, 1)) {
		mutex->owner = pthread_self();
		USDT3(pthread_mutex_trylock, plockstat, mutex__acquire, void *, mutex, int, 0, int, 0);
		return (0);
	}
	if (mutex->owner == pthread_self() && mutex->type == PTHREAD_MUTEX_RECURSIVE)
		return (mutex_self_lock(mutex));
	USDT2(pthread_mutex_trylock, plockstat, mutex__error, void *, mutex, int, EBUSY);
	return (EBUSY);
}

int __probed
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (mutex->owner != pthread_self()) {
		USDT2(pthread_mutex_unlock, plockstat, mutex__error, void *, mutex, int, EPERM);
		return (EPERM);
	}
	if (mutex->count > 0) {
		mutex->count--;
		USDT2(pthread_mutex_unlock, plockstat, mutex__release, void *, mutex, int, 1);
		return (0);
	}
	mutex->owner = NULL;
	if (__atomic_exchange_n(&mutex->lock, 0, __ATOMIC_RELEASE) == 2)
		_thr_umtx_wake(&mutex->lock, 1);
	USDT2(pthread_mutex_unlock, plockstat, mutex__release, void *, mutex, int, 0);
	return (0);
}
