/* epoll: levels, edges, one shot; sets inside sets; eventfd. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int
control(int set, int operation, int fd, unsigned wanted)
{
	struct epoll_event event = { .events = wanted, .data.u64 = 0x1234567800000000ULL + (unsigned)fd };
	return epoll_ctl(set, operation, fd, &event);
}

static void
told(const char *what, int set, int timeout)
{
	struct epoll_event got[4];
	char line[200];
	int count = epoll_wait(set, got, 4, timeout);
	result(what, count);
	for (int i = 0; i < count; i++) {
		snprintf(line, sizeof line, "  %llx", (unsigned long long)got[i].data.u64 >> 32);
		events(line, got[i].events);
	}
}

CASE(epoll)
{
	int ends[2], other[2];
	char buffer[16];
	struct epoll_event event = { 0 };
	int set = epoll_create1(EPOLL_CLOEXEC);
	worked("epoll_create1", set);
	result("flags", epoll_create1(1));
	result("no size", epoll_create(0));
	result("pipes", pipe2(ends, O_NONBLOCK) + pipe2(other, O_NONBLOCK));
	result("add", control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN));
	result("add again", control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN));
	result("delete what is not there", control(set, EPOLL_CTL_DEL, other[0], 0));
	result("change what is not there", control(set, EPOLL_CTL_MOD, other[0], 0));
	result("itself", control(set, EPOLL_CTL_ADD, set, EPOLLIN));
	result("not a file", control(set, EPOLL_CTL_ADD, 99, EPOLLIN));
	result("not an epoll", control(ends[0], EPOLL_CTL_ADD, ends[1], EPOLLIN));
	result("an operation that does not exist", control(set, 9, ends[1], EPOLLIN));
	result("a bad address", epoll_ctl(set, EPOLL_CTL_ADD, ends[1], NULL));
	int file = open("/proc/self/exe", O_RDONLY);
	result("a regular file", control(set, EPOLL_CTL_ADD, file, EPOLLIN));
	result("no room for events", epoll_wait(set, &event, 0, 0));
	told("nothing yet", set, 0);
	told("nothing for a while", set, 10);
	result("write", write(ends[1], "xyz", 3));
	told("level", set, -1);
	told("level again", set, -1);
	result("change to edge", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET));
	told("edge", set, 0);
	told("no edge", set, 0);
	result("write", write(ends[1], "x", 1));
	told("a new edge", set, 0);
	result("read", read(ends[0], buffer, 1));
	told("reading is no edge", set, 0);
	result("one shot", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT));
	told("shot", set, 0);
	result("write", write(ends[1], "x", 1));
	told("no more", set, 0);
	result("armed again", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT));
	told("shot", set, 0);
	result("the other end", control(set, EPOLL_CTL_ADD, ends[1], EPOLLOUT | EPOLLET));
	told("it can be written to", set, 0);
	result("level again", control(set, EPOLL_CTL_MOD, ends[0], EPOLLIN));
	close(ends[1]);
	told("closed: gone from the set, and the other end hangs up", set, 0);
	result("delete", epoll_ctl(set, EPOLL_CTL_DEL, ends[0], NULL));
	told("nothing", set, 0);

	result("exclusive", control(set, EPOLL_CTL_ADD, other[0], EPOLLIN | EPOLLEXCLUSIVE));
	result("cannot be changed", control(set, EPOLL_CTL_MOD, other[0], EPOLLIN));
	result("nor be made", control(set, EPOLL_CTL_ADD, other[1], EPOLLOUT | EPOLLEXCLUSIVE | EPOLLONESHOT));
	int outer = epoll_create1(0);
	result("a set inside a set", control(outer, EPOLL_CTL_ADD, set, EPOLLIN));
	result("a loop", control(set, EPOLL_CTL_ADD, outer, EPOLLIN));
	events("the outer one", polled(outer));
	result("write", write(other[1], "x", 1));
	events("the outer one", polled(outer));
	told("outer", outer, 0);
	told("inner", set, 0);
	sigset_t mask;
	sigemptyset(&mask);
	result("epoll_pwait", epoll_pwait(outer, &event, 1, 0, &mask));
	struct timespec limit = { 0, 1000000 };
	result("read", read(other[0], buffer, 1));
	result("epoll_pwait2", epoll_pwait2(outer, &event, 1, &limit, &mask));
	pid_t pid = fork();
	if (!pid) {
		sleep_ms(10);
		_exit(write(other[1], "x", 1) != 1);
	}
	told("from another process", set, -1);
	reap("child", pid);
}

CASE(epoll_many)
{
	int set = epoll_create1(0), pipes[6][2];
	struct epoll_event got[3];
	for (int i = 0; i < 6; i++) {
		if (pipe(pipes[i]) || write(pipes[i][1], "x", 1) != 1)
			return;
		struct epoll_event event = { EPOLLIN, { .u32 = (unsigned)i } };
		epoll_ctl(set, EPOLL_CTL_ADD, pipes[i][0], &event);
	}
	for (int round = 0; round < 4; round++) {
		int count = epoll_wait(set, got, 3, 0);
		char line[32] = "";
		for (int i = 0; i < count; i++)
			snprintf(line + strlen(line), sizeof line - strlen(line), " %u", got[i].data.u32);
		say("in turn:%s", line);
	}
	int ends[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	set = epoll_create1(0);
	struct epoll_event event = { EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, { .u32 = 1 } };
	epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
	told("a socket", set, 0);
	told("no edge", set, 0);
	result("write", write(ends[1], "x", 1));
	told("an edge tells everything", set, 0);
	result("shutdown", shutdown(ends[1], SHUT_WR));
	told("half closed", set, 0);
	close(ends[1]);
	told("closed", set, 0);
}

CASE(eventfd)
{
	uint64_t value = 0;
	int one = eventfd(3, EFD_NONBLOCK);
	worked("eventfd", one);
	result("flags", eventfd(0, 0x100));
	events("three", polled(one));
	result("read", read(one, &value, 8));
	result("all of it", (long)value);
	result("read", read(one, &value, 8));
	events("zero", polled(one));
	result("too short", read(one, &value, 4));
	value = 5;
	result("write", write(one, &value, 8));
	value = 7;
	result("write", write(one, &value, 8));
	result("read", read(one, &value, 8));
	result("the sum", (long)value);
	value = UINT64_MAX;
	result("the one value that cannot be", write(one, &value, 8));
	value = UINT64_MAX - 1;
	result("the largest", write(one, &value, 8));
	events("full", polled(one));
	value = 1;
	result("one more", write(one, &value, 8));
	result("seek", lseek(one, 0, SEEK_SET));
	int counted = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
	result("read", read(counted, &value, 8));
	result("one of it", (long)value);
	result("read", read(counted, &value, 8));
	result("read", read(counted, &value, 8));
	int blocking = eventfd(0, 0);
	pid_t pid = fork();
	if (!pid) {
		sleep_ms(5);
		value = 9;
		_exit(write(blocking, &value, 8) != 8);
	}
	result("read", read(blocking, &value, 8));
	result("from the child", (long)value);
	reap("child", pid);
}
