/* POSIX threads: as much of them as programs here use. printf and malloc are for one thread at a time. */
#ifndef PTHREAD_H
#define PTHREAD_H

#include "sys/types.h"

typedef struct pthread *pthread_t;

/* A lock word is 0: free, 1: held, 2: held, and threads may wait. */
typedef struct {
	volatile uint32_t lock;
	int type;
	pthread_t owner;
	uint32_t count; /* times a recursive one is held beyond the first */
} pthread_mutex_t;

enum { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP };
#define PTHREAD_MUTEX_INITIALIZER { 0, PTHREAD_MUTEX_NORMAL, NULL, 0 }
#define PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP { 0, PTHREAD_MUTEX_ADAPTIVE_NP, NULL, 0 }

/* A writer is WRITER, readers are counted. */
typedef struct {
	volatile uint32_t state;
	volatile uint32_t waiters;
	pthread_t owner;
} pthread_rwlock_t;
#define PTHREAD_RWLOCK_INITIALIZER { 0, 0, NULL }

typedef struct {
	volatile uint32_t sequence;
} pthread_cond_t;
#define PTHREAD_COND_INITIALIZER { 0 }

int pthread_create(pthread_t *thread, const void *attributes, void *(*start)(void *), void *arg);
int pthread_join(pthread_t thread, void **result);
void pthread_exit(void *result) __dead2;
pthread_t pthread_self(void);
void pthread_yield(void);

int pthread_mutex_init(pthread_mutex_t *mutex, int type);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);

int pthread_rwlock_init(pthread_rwlock_t *lock, const void *attributes);
int pthread_rwlock_destroy(pthread_rwlock_t *lock);
int pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int pthread_rwlock_unlock(pthread_rwlock_t *lock);

int pthread_cond_init(pthread_cond_t *cond, const void *attributes);
int pthread_cond_destroy(pthread_cond_t *cond);
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);

#endif
