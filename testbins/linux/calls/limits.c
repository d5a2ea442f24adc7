/* Limits of resources, priorities, and what was used. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void
on_signal(int number)
{
	(void)number;
	signals++;
}

static long
limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limits = { soft, hard };
	return setrlimit(resource, &limits);
}

static void
told(const char *what, int resource)
{
	struct rlimit limits;
	if (getrlimit(resource, &limits))
		abort();
	say("%s: %lld %lld", what, (long long)limits.rlim_cur, (long long)limits.rlim_max);
}

CASE(file_size)
{
	int fd = memfd_create("limited", 0);
	char block[100] = { 0 };
	on(SIGXFSZ, on_signal);
	result("limit", limit(RLIMIT_FSIZE, 150, 200));
	told("now", RLIMIT_FSIZE);
	result("write", write(fd, block, 100));
	result("a part", write(fd, block, 100));
	result("nothing", write(fd, block, 100));
	say("signals %d", signals);
	result("far out", pwrite(fd, block, 1, 5000));
	result("truncate", ftruncate(fd, 151));
	say("signals %d", signals);
	result("shorter", ftruncate(fd, 10));
	result("more", limit(RLIMIT_FSIZE, 201, 200));
	result("no limit of that name", limit(99, 1, 1));
	pid_t child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		result("raise the hard one", limit(RLIMIT_FSIZE, 150, 300));
		result("raise the soft one", limit(RLIMIT_FSIZE, 200, 200));
		signal(SIGXFSZ, SIG_DFL);
		(void)!pwrite(fd, block, 1, 5000);
		_exit(0);
	}
	reap("child", child);
}

CASE(address_space)
{
	result("limit", limit(RLIMIT_AS, 64 << 20, RLIM_INFINITY));
	void *memory = mmap(0, 128 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	result("too much", (long)memory);
	memory = mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	worked("enough", (long)memory);
	result("larger", (long)mremap(memory, 1 << 20, 128 << 20, MREMAP_MAYMOVE));
	result("malloc", malloc(100 << 20) ? 0 : -1);
}

CASE(cpu_time)
{
	pid_t child = fork();
	if (child == 0) {
		limit(RLIMIT_CPU, 1, 5);
		for (;;)
			;
	}
	reap("the soft limit", child);
	child = fork();
	if (child == 0) {
		signal(SIGXCPU, SIG_IGN);
		limit(RLIMIT_CPU, 1, 2);
		for (;;)
			;
	}
	reap("the hard limit", child);
}

CASE(priorities)
{
	result("at the start", getpriority(PRIO_PROCESS, 0));
	result("nice", nice(5));
	result("now", getpriority(PRIO_PROCESS, 0));
	result("more than there is", setpriority(PRIO_PROCESS, 0, 100));
	result("now", getpriority(PRIO_PROCESS, getpid()));
	result("root goes back", setpriority(PRIO_PROCESS, 0, 3));
	result("no process", getpriority(PRIO_PROCESS, 1 << 30));
	result("no kind", getpriority(9, 0));
	pid_t child = fork();
	if (child == 0) {
		result("inherited", getpriority(PRIO_PROCESS, 0));
		if (setuid(1000))
			_exit(1);
		result("higher", setpriority(PRIO_PROCESS, 0, 0));
		result("lower", setpriority(PRIO_PROCESS, 0, 4));
		result("another's", setpriority(PRIO_PROCESS, getppid(), 10));
		_exit(0);
	}
	reap("child", child);
}

CASE(used)
{
	struct rusage before, after;
	getrusage(RUSAGE_SELF, &before);
	char *memory = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, 8 << 20);
	munmap(memory, 8 << 20);
	getrusage(RUSAGE_SELF, &after);
	say("memory is counted: %d", after.ru_maxrss >= 8 << 10 && after.ru_maxrss < 1 << 20);
	say("faults are counted: %d", after.ru_minflt > before.ru_minflt);
	pid_t child = fork();
	if (child == 0) {
		struct rusage mine;
		do {
			for (volatile int i = 0; i < 100000; i++)
				;
			getrusage(RUSAGE_SELF, &mine);
		} while (!mine.ru_utime.tv_sec && mine.ru_utime.tv_usec < 20000);
		_exit(0);
	}
	reap("child", child);
	struct rusage children;
	result("children", getrusage(RUSAGE_CHILDREN, &children));
	say("time of children is counted: %d", children.ru_utime.tv_sec || children.ru_utime.tv_usec);
	result("whose", getrusage(5, &children));
}
