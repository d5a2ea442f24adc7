/* Threads on CPUs, whatever their number: each runs where it may, says so everywhere, and they share their work. */
#define _GNU_SOURCE
#include "calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define MOST 64
#define ROUNDS 400

static cpu_set_t all;
static int cpus[MOST], count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long guarded, atomic;
static volatile int wrong, moved, ended;

static int
pin(pid_t tid, int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(tid, sizeof one, &one);
}

/* The field "processor" of a thread's stat. */
static int
processor(void)
{
	char text[1024] = "", *place;
	FILE *file = fopen("/proc/thread-self/stat", "r");
	if (file == NULL || fgets(text, sizeof text, file) == NULL || (place = strrchr(text, ')')) == NULL)
		return -1;
	fclose(file);
	for (int field = 2; field < 39; field++)
		place = strchr(place + 1, ' ');
	return atoi(place);
}

static void *
pinned(void *argument)
{
	int cpu = *(int *)argument;
	unsigned told = 0, node = 1;
	if (pin(0, cpu) != 0)
		wrong++;
	for (int i = 0; i < ROUNDS; i++) {
		if (sched_getcpu() != cpu)
			wrong++;
		pthread_mutex_lock(&mutex);
		guarded += i;
		pthread_mutex_unlock(&mutex);
		__atomic_fetch_add(&atomic, i, __ATOMIC_SEQ_CST);
	}
	if (syscall(SYS_getcpu, &told, &node, NULL) != 0 || (int)told != cpu || processor() != cpu)
		wrong++;
	return NULL;
}

/* Runs until another thread has sent it to the last CPU. */
static void *
wanders(void *argument)
{
	*(volatile pid_t *)argument = gettid();
	while (sched_getcpu() != cpus[count - 1])
		;
	moved = 1;
	while (!ended)
		usleep(1000);
	return NULL;
}

static void *
inherits(void *argument)
{
	cpu_set_t own;
	sched_getaffinity(0, sizeof own, &own);
	*(int *)argument = CPU_COUNT(&own) == 1 && CPU_ISSET(cpus[0], &own) && sched_getcpu() == cpus[0];
	return NULL;
}

static int
lines_of_cpuinfo(void)
{
	char line[4096];
	int found = 0;
	FILE *file = fopen("/proc/cpuinfo", "r");
	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		found += strncmp(line, "processor", 9) == 0;
	if (file != NULL)
		fclose(file);
	return found;
}

CASE(cpus)
{
	pthread_t threads[MOST], wanderer;
	volatile pid_t tid = 0;
	unsigned long expected = 0;
	worked("affinity at first", sched_getaffinity(0, sizeof all, &all));
	for (int cpu = 0; cpu < CPU_SETSIZE && count < MOST; cpu++)
		if (CPU_ISSET(cpu, &all))
			cpus[count++] = cpu;
	say("there is %s", count > 0 ? "a CPU" : "none");
	say("cpuinfo and sysconf: %s", lines_of_cpuinfo() == sysconf(_SC_NPROCESSORS_ONLN) ? "the same" : "different");
	say("get_nprocs: %s", get_nprocs() >= count && get_nprocs_conf() >= get_nprocs() ? "enough" : "too few");

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, pinned, &cpus[i]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < ROUNDS; i++)
		expected += (unsigned long)i * count;
	say("threads with a CPU each: %d wrong, sums %s", wrong, guarded == expected && atomic == expected ? "right" : "wrong");

	pthread_create(&wanderer, NULL, wanders, (void *)&tid);
	while (tid == 0)
		sched_yield();
	result("a running thread is sent away", pin(tid, cpus[count - 1]));
	while (!moved)
		sched_yield();
	say("it went");
	ended = 1;
	pthread_join(wanderer, NULL);

	result("this one stays on the first", pin(0, cpus[0]));
	int inherited = 0;
	pthread_create(&wanderer, NULL, inherits, &inherited);
	pthread_join(wanderer, NULL);
	say("a new thread stays there too: %d", inherited);
	pid_t child = fork();
	if (child == 0) {
		int same = 0;
		inherits(&same);
		_exit(same);
	}
	reap("so does a child", child);
	result("back", sched_setaffinity(0, sizeof all, &all));

	cpu_set_t none;
	CPU_ZERO(&none);
	result("on no CPU", sched_setaffinity(0, sizeof none, &none));
	result("a CPU that there is not", pin(0, CPU_SETSIZE - 1));
	result("a thread that there is not", pin(999999, cpus[0]));
	result("too little room", sched_getaffinity(0, 1, &none));
	result("no address", syscall(SYS_sched_getaffinity, 0, sizeof none, nowhere));
}
