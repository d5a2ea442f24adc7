/* Condition variables (FreeBSD lib/libthr/thread/thr_cond.c): a count of the signals, on which threads wait. */
#include "thr_private.h"

int
pthread_cond_init(pthread_cond_t *cond, const void *attributes __unused)
{
	cond->sequence = 0;
	return (0);
}

int
pthread_cond_destroy(pthread_cond_t *cond __unused)
{
	return (0);
}

int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	uint32_t seen = cond->sequence;
	int error = pthread_mutex_unlock(mutex);

	if (error != 0)
		return (error);
	_thr_umtx_wait(&cond->sequence, seen);
	return (pthread_mutex_lock(mutex));
}

int
pthread_cond_signal(pthread_cond_t *cond)
{
	__atomic_add_fetch(&cond->sequence, 1, __ATOMIC_SEQ_CST);
	_thr_umtx_wake(&cond->sequence, 1);
	return (0);
}

int
pthread_cond_broadcast(pthread_cond_t *cond)
{
	__atomic_add_fetch(&cond->sequence, 1, __ATOMIC_SEQ_CST);
	_thr_umtx_wake(&cond->sequence, UINT64_MAX);
	return (0);
}
