/* What the files of libthr share. */
#ifndef THR_PRIVATE_H
#define THR_PRIVATE_H

#include "libc.h"
#include "pthread.h"
#include "sys/thr.h"

/* A thread, at the lowest address of its stack. */
struct pthread {
	void *(*start)(void *);
	void *arg;
	void *result;
	long tid;
	long ended;	/* the kernel sets it, and wakes who waits for it */
	int error;	/* its errno */
};

static inline int
_thr_umtx_wait(volatile uint32_t *word, uint32_t value)
{
	return (_umtx_op((void *)word, UMTX_OP_WAIT_UINT_PRIVATE, value, NULL, NULL));
}

static inline void
_thr_umtx_wake(volatile uint32_t *word, uint64_t n)
{
	_umtx_op((void *)word, UMTX_OP_WAKE_PRIVATE, n, NULL, NULL);
}

static inline bool
atomic_cmpset_acq_32(volatile uint32_t *word, uint32_t old, uint32_t new)
{
	return (__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}

#endif
