/* What another program keeps, what a process that ends takes along, and advice about another process. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

/* What the case below runs: it must not be the user's terminal that has descriptor 9. */
CASE(other_program)
{
	say("personality %lx", CALL(personality, -1));
	result("input and output", CALL(ioprio_get, 1, 0));
	result("registrations", CALL(membarrier, 0x200, 0, 0));
	say("descriptor 9: %s", fcntl(9, F_GETFD) < 0 ? "closed" : "open");
	fflush(stdout);
}

static int
run_it(void *what)
{
	(void)what;
	execl("/proc/self/exe", "program", "other_program", NULL);
	_exit(1);
}

static void *
run_from_thread(void *what)
{
	result("thread: unshare", unshare(CLONE_FILES));
	dup2(1, 9);
	run_it(what);
	return NULL;
}

CASE(another_program)
{
	static char stack[65536];
	CALL(personality, 0x40000 | 0x20000);
	CALL(ioprio_set, 1, 0, 2 << 13 | 6);
	CALL(membarrier, 0x10, 0, 0);
	pid_t child = fork();
	if (!child)
		run_it(NULL);
	reap("a child", child);
	dup3(1, 9, O_CLOEXEC);
	child = clone(run_it, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	reap("a sharer", child);
	say("descriptor 9: %s", fcntl(9, F_GETFD) < 0 ? "closed" : "open");
	close(9);
	child = fork();
	if (!child) {
		pthread_t thread;
		pthread_create(&thread, NULL, run_from_thread, NULL);
		pthread_join(thread, NULL);
		_exit(1);
	}
	reap("a thread's", child);
}

static int
close_range_(void *what)
{
	(void)what;
	result("close, apart", CALL(close_range, 9, 9, 2));
	say("descriptor 9: %s", fcntl(9, F_GETFD) < 0 ? "closed" : "open");
	_exit(0);
}

CASE(close_apart)
{
	static char stack[65536];
	dup2(1, 9);
	pid_t child = clone(close_range_, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	reap("a sharer", child);
	say("descriptor 9: %s", fcntl(9, F_GETFD) < 0 ? "closed" : "open");
}

CASE(advice_to_others)
{
	char *at = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(at + 2 * 4096, 4096);
	struct iovec parts[] = { { at, 4096 }, { at + 4096, 8192 }, { at, 4096 } };
	int self = CALL(pidfd_open, getpid(), 0);
	result("cold", CALL(process_madvise, self, parts, 1, 20, 0));
	result("a flag", CALL(process_madvise, self, parts, 1, 20, 1));
	result("wrong advice", CALL(process_madvise, self, parts, 1, 77, 0));
	result("unaligned", CALL(process_madvise, self, &(struct iovec){ at + 1, 1 }, 1, 20, 0));
	result("no file", CALL(process_madvise, 99, parts, 1, 20, 0));
	result("another file", CALL(process_madvise, 1, parts, 1, 20, 0));
	result("a gap", CALL(process_madvise, self, parts + 1, 1, 20, 0));
	result("nothing", CALL(process_madvise, self, parts, 0, 20, 0));
	pid_t child = fork();
	if (!child) {
		sleep_ms(5000);
		_exit(0);
	}
	int fd = CALL(pidfd_open, child, 0);
	result("a child's", CALL(process_madvise, fd, parts, 1, 3, 0));
	result("drop a child's", CALL(process_madvise, fd, parts, 1, 4, 0));
	kill(child, SIGKILL);
	reap("child", child);
	result("reaped", CALL(process_madvise, fd, parts, 1, 3, 0));
}
