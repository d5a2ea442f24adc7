/* Four threads and everything they wait for each other with. They speak only through variables; the first thread prints. */
#include "zoo.h"

#include <pthread.h>

namespace {

constexpr int THREADS = 4;
constexpr int ROUNDS = 50;

struct Worker {
	pthread_t thread;
	int number;
	uint64_t local;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_barrier_t barrier;
pthread_once_t once = PTHREAD_ONCE_INIT;
uint64_t total;
int turn;
int initialised;
uint64_t atomic_total;
thread_local uint64_t own = 100;

void
initialise()
{
	initialised++;
}

} // namespace

PROBEABLE void
thread_add(uint64_t amount)
{
	pthread_mutex_lock(&mutex);
	total += amount;
	pthread_mutex_unlock(&mutex);
	__atomic_fetch_add(&atomic_total, amount, __ATOMIC_SEQ_CST);
	own += amount;
}

/* Threads pass in order of their numbers. */
PROBEABLE void
thread_take_turn(int number)
{
	pthread_mutex_lock(&mutex);
	while (turn != number)
		pthread_cond_wait(&changed, &mutex);
	total = total * 7 + number;
	turn++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
}

PROBEABLE void *
thread_main(void *argument)
{
	Worker *worker = static_cast<Worker *>(argument);
	pthread_once(&once, initialise);
	for (int i = 1; i <= ROUNDS; i++)
		thread_add(i * (worker->number + 1));
	pthread_barrier_wait(&barrier);
	thread_take_turn(worker->number);
	worker->local = own;
	return reinterpret_cast<void *>(static_cast<intptr_t>(worker->number * 11));
}

int
case_threads(int, char **)
{
	Worker workers[THREADS] = {};
	if (pthread_barrier_init(&barrier, nullptr, THREADS + 1))
		fail("pthread_barrier_init");
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		if (pthread_create(&workers[i].thread, nullptr, thread_main, &workers[i]))
			fail("pthread_create");
	}
	pthread_barrier_wait(&barrier);
	for (Worker &worker : workers) {
		void *result;
		if (pthread_join(worker.thread, &result))
			fail("pthread_join");
		say("thread %d: local %llu, result %d", worker.number, static_cast<unsigned long long>(worker.local),
		    static_cast<int>(reinterpret_cast<intptr_t>(result)));
	}
	say("total %llu", static_cast<unsigned long long>(total));
	say("atomic total %llu", static_cast<unsigned long long>(atomic_total));
	say("initialised %d time, the first thread's own is %llu", initialised, static_cast<unsigned long long>(own));
	return 14;
}
