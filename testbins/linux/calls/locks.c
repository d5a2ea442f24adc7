/* Locks: flock, records of POSIX and of open file descriptions; across processes, waiting, and in a circle. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/locksXXXXXX";

static int
opened(void)
{
	strcpy(path, "/tmp/locksXXXXXX");
	int fd = mkstemp(path);
	if (write(fd, "0123456789", 10) != 10)
		abort();
	return fd;
}

static long
lock(int fd, int command, short type, off_t start, off_t length)
{
	struct flock request = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
	return fcntl(fd, command, &request);
}

static void
told(const char *what, int fd, int command, short type, off_t start, off_t length)
{
	struct flock request = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
	result(what, fcntl(fd, command, &request));
	say("  type %d start %lld length %lld pid %s", request.l_type, (long long)request.l_start, (long long)request.l_len,
	    request.l_pid == -1 ? "-1" : request.l_pid == getppid() ? "the parent" : request.l_pid ? "another" : "0");
}

static void
until(int fd)
{
	char byte;
	if (read(fd, &byte, 1) != 1)
		_exit(9);
}

CASE(flock)
{
	int one = opened(), two = open(path, O_RDWR), again = dup(one);
	result("shared", flock(one, LOCK_SH));
	result("shared twice", flock(two, LOCK_SH | LOCK_NB));
	result("exclusive", flock(two, LOCK_EX | LOCK_NB));
	result("unlock", flock(one, LOCK_UN));
	result("exclusive", flock(two, LOCK_EX | LOCK_NB));
	result("shared", flock(one, LOCK_SH | LOCK_NB));
	result("unlock", flock(two, LOCK_UN));
	result("by a copy of the descriptor", flock(again, LOCK_EX | LOCK_NB));
	result("it is the same lock", flock(one, LOCK_EX | LOCK_NB));
	result("refused", flock(two, LOCK_SH | LOCK_NB));
	close(one);
	result("the copy holds it", flock(two, LOCK_SH | LOCK_NB));
	close(again);
	result("nobody holds it", flock(two, LOCK_SH | LOCK_NB));
	result("no operation", flock(two, LOCK_NB));
	result("nothing", flock(two, 0));
	result("a bad descriptor", flock(99, LOCK_SH));
	int third = open(path, O_RDONLY);
	pid_t child = fork();
	if (child == 0) {
		result("the child's exclusive one", flock(third, LOCK_EX | LOCK_NB));
		_exit(0);
	}
	reap("child", child);
	int ready[2];
	if (pipe(ready))
		abort();
	child = fork();
	if (child == 0) {
		int mine = open(path, O_RDWR);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		result("waits", flock(mine, LOCK_EX));
		_exit(0);
	}
	until(ready[0]);
	sleep_ms(30);
	say("the parent lets go");
	result("unlock", flock(two, LOCK_UN));
	reap("child", child);
	unlink(path);
}

CASE(records)
{
	int fd = opened(), ready[2];
	if (pipe(ready))
		abort();
	result("write lock", lock(fd, F_SETLK, F_WRLCK, 2, 4));
	told("the own one does not count", fd, F_GETLK, F_WRLCK, 0, 0);
	pid_t child = fork();
	if (child == 0) {
		told("all of it", fd, F_GETLK, F_WRLCK, 0, 0);
		told("before", fd, F_GETLK, F_WRLCK, 0, 2);
		told("a byte", fd, F_GETLK, F_RDLCK, 5, 1);
		told("behind", fd, F_GETLK, F_RDLCK, 6, 1);
		result("refused", lock(fd, F_SETLK, F_RDLCK, 0, 3));
		result("granted", lock(fd, F_SETLK, F_WRLCK, 6, 0));
		_exit(0);
	}
	reap("child", child);
	result("part of it is let go", lock(fd, F_SETLK, F_UNLCK, 3, 1));
	result("part of it is shared", lock(fd, F_SETLK, F_RDLCK, 5, 100));
	child = fork();
	if (child == 0) {
		told("the first", fd, F_GETLK, F_WRLCK, 0, 0);
		told("the hole", fd, F_GETLK, F_WRLCK, 3, 1);
		told("the next", fd, F_GETLK, F_WRLCK, 3, 0);
		told("the shared", fd, F_GETLK, F_WRLCK, 5, 0);
		told("shared with it", fd, F_GETLK, F_RDLCK, 5, 0);
		_exit(0);
	}
	reap("child", child);
	result("from the end", fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -2, .l_len = -3 }));
	result("before the start", lock(fd, F_SETLK, F_WRLCK, -1, 1));
	result("a kind that is not there", lock(fd, F_SETLK, 9, 0, 0));
	int reads = open(path, O_RDONLY);
	result("to write, opened for reading", lock(reads, F_SETLK, F_WRLCK, 0, 1));
	result("a bad address", fcntl(fd, F_SETLK, nowhere));
	close(reads);
	child = fork();
	if (child == 0) {
		result("closing any descriptor let all of them go", lock(fd, F_SETLK, F_WRLCK, 0, 0));
		_exit(0);
	}
	reap("child", child);
	result("write lock", lock(fd, F_SETLK, F_WRLCK, 0, 0));
	child = fork();
	if (child == 0) {
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		result("waits", lock(fd, F_SETLKW, F_WRLCK, 0, 0));
		_exit(0);
	}
	until(ready[0]);
	sleep_ms(30);
	say("the parent lets go");
	result("unlock", lock(fd, F_SETLK, F_UNLCK, 0, 0));
	reap("child", child);
	unlink(path);
}

static void
on_signal(int number)
{
	(void)number;
}

CASE(deadlock)
{
	int fd = opened(), ready[2];
	if (pipe(ready))
		abort();
	result("the parent's", lock(fd, F_SETLK, F_WRLCK, 0, 1));
	pid_t child = fork();
	if (child == 0) {
		result("the child's", lock(fd, F_SETLK, F_WRLCK, 1, 1));
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		on(SIGALRM, on_signal);
		result("waits for the parent's", lock(fd, F_SETLKW, F_WRLCK, 0, 1));
		_exit(0);
	}
	until(ready[0]);
	sleep_ms(30);
	result("in a circle", lock(fd, F_SETLKW, F_WRLCK, 1, 1));
	kill(child, SIGALRM);
	reap("child", child);
	unlink(path);
}

CASE(descriptions)
{
	int one = opened(), two = open(path, O_RDWR);
	result("of a description", lock(one, F_OFD_SETLK, F_WRLCK, 0, 5));
	result("refused to another", lock(two, F_OFD_SETLK, F_WRLCK, 4, 5));
	result("granted", lock(two, F_OFD_SETLK, F_WRLCK, 5, 5));
	told("who", two, F_OFD_GETLK, F_RDLCK, 0, 0);
	result("refused to the process", lock(two, F_SETLK, F_WRLCK, 0, 1));
	result("with a pid", fcntl(one, F_OFD_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_pid = 1 }));
	int again = dup(one);
	close(one);
	result("the copy holds it", lock(two, F_OFD_SETLK, F_WRLCK, 0, 1));
	close(again);
	result("nobody holds it", lock(two, F_OFD_SETLK, F_WRLCK, 0, 1));
	int third = open(path, O_PATH);
	result("of a path", lock(third, F_OFD_SETLK, F_RDLCK, 0, 1));
	unlink(path);
}
