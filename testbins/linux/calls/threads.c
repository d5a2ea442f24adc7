/* Locks with an owner (PI futexes), locks whose owner has ended (robust lists), and who runs how often. */
#define _GNU_SOURCE
#include "calls.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex
#define SYS_futex SYS_futex_time64
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

static long
futex(volatile unsigned *word, int operation, unsigned value, const struct timespec *time, volatile unsigned *other,
    unsigned last)
{
	return syscall(SYS_futex, word, operation, value, time, other, last);
}

static void
word(const char *what, unsigned value, pid_t owner)
{
	say("%s: %s%s%s", what, (value & FUTEX_TID_MASK) == 0 ? "nobody" : (value & FUTEX_TID_MASK) == (unsigned)owner ? "the owner" : "another",
	    value & FUTEX_WAITERS ? " waiters" : "", value & FUTEX_OWNER_DIED ? " died" : "");
}

static volatile unsigned lock, condition;
static volatile pid_t first, second;

static void *
waits_for_lock(void *number)
{
	*(volatile pid_t *)number = gettid();
	long got = futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
	sleep_ms(20);
	result("the other gets it", got);
	word("then", lock, gettid());
	return NULL;
}

static void
on_signal(int number)
{
	(void)number;
}

CASE(pi_futexes)
{
	result("not locked", futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	result("lock", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	word("locked", lock, gettid());
	result("twice", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	result("try", futex(&lock, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	pthread_t thread;
	pthread_create(&thread, NULL, waits_for_lock, (void *)&first);
	sleep_ms(30);
	word("wanted", lock, gettid());
	result("unlock", futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	pthread_join(thread, NULL);
	word("its owner has ended", lock, first);
	lock = 0x3fffffff;
	result("no such owner", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	lock = FUTEX_OWNER_DIED;
	result("whose owner died", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	word("then", lock, gettid());
	result("unlock", futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	word("free", lock, gettid());
	pid_t child = fork();
	if (child == 0) {
		sleep_ms(200);
		_exit(0);
	}
	lock = child;
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	result("in the past", futex(&lock, FUTEX_LOCK_PI, 0, &time, NULL, 0));
	clock_gettime(CLOCK_MONOTONIC, &time);
	result("in the past", futex(&lock, FUTEX_LOCK_PI2, 0, &time, NULL, 0));
	result("another's", futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	result("try", futex(&lock, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
	on(SIGALRM, on_signal);
	ualarm(20000, 0);
	result("its owner ends", futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	word("then", lock, gettid());
	reap("child", child);
	result("not aligned", futex((unsigned *)((char *)&lock + 1), FUTEX_LOCK_PI, 0, NULL, NULL, 0));
}

static void *
waits_to_be_moved(void *number)
{
	*(volatile pid_t *)number = gettid();
	long woken = futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &lock, 0);
	sleep_ms(20);
	result("moved and woken", woken);
	word("has the lock", lock, gettid());
	futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	return NULL;
}

CASE(pi_requeue)
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, waits_to_be_moved, (void *)&first);
	sleep_ms(30);
	pthread_create(&threads[1], NULL, waits_to_be_moved, (void *)&second);
	sleep_ms(30);
	result("another value", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)10, &lock, 1));
	result("wake two", futex(&condition, FUTEX_CMP_REQUEUE_PI, 2, (void *)10, &lock, 0));
	futex(&lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
	result("move both", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)10, &lock, 0));
	word("wanted", lock, gettid());
	result("unlock", futex(&lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	word("free", lock, gettid());
	result("nobody", futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, (void *)10, &lock, 0));
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	result("in the past", futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, &time, &lock, 0));
	result("the same word", futex(&lock, FUTEX_WAIT_REQUEUE_PI, 0, NULL, &lock, 0));
}

/* -- robust pthread mutexes: the end of the owner */

static const char *
error(int number)
{
	return number ? strerrorname_np(number) : "ok";
}

static void *
ends_with(void *mutex)
{
	say("in the thread: %s", error(pthread_mutex_lock(mutex)));
	return NULL;
}

static pthread_mutex_t *
make_mutex(int protocol)
{
	pthread_mutex_t *mutex = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	say("init: %s", error(pthread_mutex_init(mutex, &attributes)));
	return mutex;
}

static void
robust(int protocol)
{
	pthread_mutex_t *mutex = make_mutex(protocol);
	pthread_t thread;
	pthread_create(&thread, NULL, ends_with, mutex);
	pthread_join(thread, NULL);
	say("after it: %s", error(pthread_mutex_lock(mutex)));
	say("consistent: %s", error(pthread_mutex_consistent(mutex)));
	say("unlock: %s", error(pthread_mutex_unlock(mutex)));
	pid_t child = fork();
	if (child == 0) {
		say("in the child: %s", error(pthread_mutex_lock(mutex)));
		sleep_ms(60);
		kill(getpid(), SIGKILL);
	}
	sleep_ms(30);
	say("waits for its end: %s", error(pthread_mutex_lock(mutex)));
	reap("child", child);
	say("unlock: %s", error(pthread_mutex_unlock(mutex)));
	say("not made consistent: %s", error(pthread_mutex_lock(mutex)));
	mutex = make_mutex(protocol);
	child = fork();
	if (child == 0) {
		say("in the child: %s", error(pthread_mutex_lock(mutex)));
		execl("/proc/self/exe", "calls", "nothing", NULL);
		_exit(1);
	}
	reap("child", child);
	say("after its exec: %s", error(pthread_mutex_trylock(mutex)));
}

CASE(robust_mutexes)
{
	robust(PTHREAD_PRIO_NONE);
}

CASE(robust_pi_mutexes)
{
	robust(PTHREAD_PRIO_INHERIT);
}

CASE(robust_lists)
{
	void *head;
	size_t size;
	result("own list", syscall(SYS_get_robust_list, 0, &head, &size));
	say("size in words: %d", (int)(size / sizeof(long)));
	result("another size", syscall(SYS_set_robust_list, head, size + 1));
	result("no thread", syscall(SYS_get_robust_list, 0x3fffffff, &head, &size));
}

/* -- who runs how often */

struct shares {
	volatile long counts[3];
	volatile int go, stop;
};

static struct shares *
make_shares(void)
{
	cpu_set_t first_cpu;
	CPU_ZERO(&first_cpu);
	CPU_SET(0, &first_cpu);
	if (sched_setaffinity(0, sizeof first_cpu, &first_cpu))
		abort();
	return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static pid_t
count(struct shares *shares, int place)
{
	pid_t child = fork();
	if (child)
		return child;
	while (!shares->go)
		sched_yield();
	while (!shares->stop)
		shares->counts[place]++;
	_exit(0);
}

static void
ratio(const char *what, long many, long few, int least, int most)
{
	double found = few ? (double)many / few : 1e9;
	if (found >= least / 10.0 && found <= most / 10.0)
		say("%s: as its weight", what);
	else
		say("%s: %.2f", what, found);
}

CASE(shares_of_nice)
{
	struct shares *shares = make_shares();
	pid_t children[3];
	for (int i = 0; i < 3; i++) {
		children[i] = count(shares, i);
		result("nice", setpriority(PRIO_PROCESS, children[i], i * 5));
	}
	/* Must have its turn among those that count. */
	struct sched_param parameters = { .sched_priority = 1 };
	result("first of all", sched_setscheduler(0, SCHED_FIFO, &parameters));
	shares->go = 1;
	sleep_ms(400);
	shares->stop = 1;
	for (int i = 0; i < 3; i++)
		reap("child", children[i]);
	ratio("0 to 5", shares->counts[0], shares->counts[1], 20, 45); /* 1024 / 335 */
	ratio("5 to 10", shares->counts[1], shares->counts[2], 20, 45); /* 335 / 110 */
}

CASE(shares_of_policies)
{
	struct shares *shares = make_shares();
	pid_t children[3];
	struct sched_param none = { 0 }, parameters = { .sched_priority = 5 }, above = { .sched_priority = 9 };
	for (int i = 0; i < 3; i++)
		children[i] = count(shares, i);
	result("idle", sched_setscheduler(children[2], SCHED_IDLE, &none));
	result("batch", sched_setscheduler(children[1], SCHED_BATCH, &none));
	result("above", sched_setscheduler(0, SCHED_FIFO, &above));
	shares->go = 1;
	sleep_ms(200);
	say("idle has little: %d", shares->counts[2] < shares->counts[0] / 5);
	ratio("normal and batch", shares->counts[0], shares->counts[1], 7, 14);
	long before = shares->counts[0];
	result("real time", sched_setscheduler(children[1], SCHED_RR, &parameters));
	long between = shares->counts[1];
	sleep_ms(200);
	say("real time comes first: %d", shares->counts[1] - between > 5 * (shares->counts[0] - before));
	shares->stop = 1;
	for (int i = 0; i < 3; i++)
		reap("child", children[i]);
}

static void *
tells(void *name)
{
	say("%s", (const char *)name);
	return NULL;
}

static void
start(pthread_t *thread, int policy, int priority, const char *name)
{
	pthread_attr_t attributes;
	struct sched_param parameters = { .sched_priority = priority };
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, policy);
	pthread_attr_setschedparam(&attributes, &parameters);
	int failed = pthread_create(thread, &attributes, tells, (void *)name);
	if (failed)
		say("create: %s", error(failed));
}

CASE(policies)
{
	make_shares();
	struct sched_param parameters = { .sched_priority = 50 };
	result("normal", sched_getscheduler(0));
	result("no policy", sched_setscheduler(0, 99, &parameters));
	result("a priority of none", sched_setscheduler(0, SCHED_OTHER, &parameters));
	result("highest", sched_get_priority_max(SCHED_FIFO));
	result("lowest", sched_get_priority_min(SCHED_RR));
	result("of normal ones", sched_get_priority_max(SCHED_OTHER));
	result("of none", sched_get_priority_min(77));
	result("first in first out", sched_setscheduler(0, SCHED_FIFO, &parameters));
	result("policy", sched_getscheduler(0));
	result("priority", sched_getparam(0, &parameters));
	say("  %d", parameters.sched_priority);
	struct timespec time = { 9, 9 };
	result("turn", sched_rr_get_interval(0, &time));
	say("  %ld %ld", (long)time.tv_sec, (long)time.tv_nsec);
	pthread_t threads[4];
	start(&threads[0], SCHED_FIFO, 10, "fourth");
	start(&threads[1], SCHED_RR, 20, "third");
	start(&threads[2], SCHED_FIFO, 60, "at once");
	start(&threads[3], SCHED_FIFO, 20, "second, whose priority was lowered last");
	say("first");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	parameters.sched_priority = 30;
	result("round robin, not for children", sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &parameters));
	say("policy: %x", (unsigned)sched_getscheduler(0));
	result("turn", sched_rr_get_interval(0, &time));
	say("  %ld %ld", (long)time.tv_sec, (long)time.tv_nsec);
	pid_t child = fork();
	if (child == 0) {
		result("of a child", sched_getscheduler(0));
		_exit(0);
	}
	reap("child", child);
	parameters.sched_priority = 0;
	result("normal again", sched_setscheduler(0, SCHED_OTHER, &parameters));
	child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		result("idle", sched_setscheduler(0, SCHED_IDLE, &parameters));
		parameters.sched_priority = 1;
		result("real time", sched_setscheduler(0, SCHED_RR, &parameters));
		parameters.sched_priority = 0;
		result("root's", sched_setscheduler(getppid(), SCHED_BATCH, &parameters));
		_exit(0);
	}
	reap("child", child);
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t times[3];
	} attributes = { sizeof attributes, SCHED_BATCH, 0, 7, 0, { 0 } };
	result("attributes", syscall(SYS_sched_setattr, 0, &attributes, 0));
	memset(&attributes, 0, sizeof attributes);
	result("attributes", syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0));
	say("  policy %u nice %d priority %u, nice %d", attributes.policy, attributes.nice, attributes.priority, getpriority(PRIO_PROCESS, 0));
	result("no CPU", sched_setaffinity(0, 8, (cpu_set_t[]){ { { 0 } } }));
}

/* A low-priority thread holds a lock that a high-priority one needs; one in between would run forever. */

static pthread_mutex_t inherited;
static volatile int holding, asked, counted;

static void
as(int priority)
{
	struct sched_param parameters = { .sched_priority = priority };
	if (sched_setscheduler(0, SCHED_FIFO, &parameters))
		abort();
}

static void *
holds(void *unused)
{
	(void)unused;
	as(10);
	pthread_mutex_lock(&inherited);
	holding = 1;
	while (!asked)
		;
	for (volatile long i = 0; i < 100000; i++)
		;
	say("low gives it back, the middle one has counted: %d", counted);
	pthread_mutex_unlock(&inherited);
	say("low goes on");
	return NULL;
}

static void *
runs_on(void *unused)
{
	(void)unused;
	as(20);
	for (volatile long i = 0; i < 100000; i++)
		;
	counted = 1;
	say("the middle one has counted");
	return NULL;
}

static void *
wants(void *unused)
{
	(void)unused;
	as(30);
	asked = 1;
	pthread_mutex_lock(&inherited);
	say("high has it");
	pthread_mutex_unlock(&inherited);
	return NULL;
}

CASE(priority_lent)
{
	make_shares();
	as(50);
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inherited, &attributes);
	pthread_t low, middle, high;
	pthread_create(&low, NULL, holds, NULL);
	sleep_ms(20);
	say("low holds it: %d", holding);
	pthread_create(&middle, NULL, runs_on, NULL);
	pthread_create(&high, NULL, wants, NULL);
	pthread_join(high, NULL);
	pthread_join(middle, NULL);
	pthread_join(low, NULL);
}
