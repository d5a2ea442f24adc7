/* contend [rounds]: threads that are in each other's way at mutexes, a read/write lock and a condition variable */
#include "libc.h"
#include "pthread.h"

#define THREADS 4

static pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t adaptive_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t tree_lock = { .type = PTHREAD_MUTEX_RECURSIVE };
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;
static int rounds = 5, ready;
static unsigned long counter, adaptive, depth, table[8];

/* Another thread gets the CPU while the lock is held, so it must wait for the lock. */
static void __noinline
count(void)
{
	pthread_mutex_lock(&counter_lock);
	unsigned long seen = counter;
	usleep(2000);
	counter = seen + 1;
	pthread_mutex_unlock(&counter_lock);
}

static void __noinline
count_adaptively(void)
{
	pthread_mutex_lock(&adaptive_lock);
	unsigned long seen = adaptive;
	usleep(1000);
	adaptive = seen + 1;
	pthread_mutex_unlock(&adaptive_lock);
}

static void __noinline
descend(int levels)
{
	pthread_mutex_lock(&tree_lock);
	depth++;
	if (levels > 1)
		descend(levels - 1);
	pthread_mutex_unlock(&tree_lock);
}

static unsigned long __noinline
look_up(int key)
{
	pthread_rwlock_rdlock(&table_lock);
	unsigned long found = table[key % nitems(table)];
	usleep(1000);
	pthread_rwlock_unlock(&table_lock);
	return (found);
}

static void __noinline
update(int key)
{
	pthread_rwlock_wrlock(&table_lock);
	table[key % nitems(table)]++;
	usleep(1000);
	pthread_rwlock_unlock(&table_lock);
}

static void *
work(void *arg)
{
	unsigned long sum = 0, number = (unsigned long)arg;

	pthread_mutex_lock(&counter_lock);
	ready++;
	pthread_cond_signal(&started);
	pthread_mutex_unlock(&counter_lock);
	for (int i = 0; i < rounds; i++)
		for (int step = 0; step < 4; step++)
			switch ((number + step) % 4) { /* each begins elsewhere */
			case 0:
				count();
				break;
			case 1:
				count_adaptively();
				break;
			case 2:
				descend(3);
				break;
			default:
				if (number % 2 == 0)
					update(i);
				else
					sum += look_up(i) > (unsigned long)rounds;
			}
	return ((void *)(sum + number));
}

int
main(int argc, char *argv[])
{
	pthread_t threads[THREADS];
	unsigned long sum = 0;
	void *result;
	int error;

	if (argc > 1)
		rounds = atol(argv[1]);
	for (unsigned long i = 0; i < THREADS; i++)
		if ((error = pthread_create(&threads[i], NULL, work, (void *)i)) != 0)
			errx(1, "pthread_create: %s", strerror(error));
	pthread_mutex_lock(&counter_lock);
	while (ready < THREADS)
		pthread_cond_wait(&started, &counter_lock);
	pthread_mutex_unlock(&counter_lock);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		sum += (unsigned long)result;
	}
	printf("contend: %lu, %lu, %lu, sum %lu\n", counter, adaptive, depth, sum);
	return (0);
}
