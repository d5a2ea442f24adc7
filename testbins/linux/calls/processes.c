/* Processes by file, and the newer ways to make them and to wait for them. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void
waited(const char *what, int kind, int id, int options)
{
	siginfo_t info;
	memset(&info, 0, sizeof info);
	if (waitid(kind, (id_t)id, &info, options) < 0) {
		result(what, -1);
		return;
	}
	say("%s: code %d, status %d", what, info.si_code, info.si_status);
}

CASE(pidfd)
{
	int ends[2];
	result("no such process", syscall(SYS_pidfd_open, 99999999, 0));
	result("not a number of processes", syscall(SYS_pidfd_open, -1, 0));
	result("flags", syscall(SYS_pidfd_open, getpid(), 1));
	worked("pipe", pipe(ends));
	pid_t pid = fork();
	if (!pid) {
		char one;
		_exit(read(ends[0], &one, 1) == 1 ? 5 : 6);
	}
	int file = (int)syscall(SYS_pidfd_open, pid, 0);
	worked("pidfd_open", file);
	result("close on exec", fcntl(file, F_GETFD));
	events("alive", polled(file));
	result("signal 0", syscall(SYS_pidfd_send_signal, file, 0, NULL, 0));
	result("a signal that does not exist", syscall(SYS_pidfd_send_signal, file, 99, NULL, 0));
	result("not a process", syscall(SYS_pidfd_send_signal, 0, 0, NULL, 0));
	int copy = (int)syscall(SYS_pidfd_getfd, file, ends[1], 0);
	worked("pidfd_getfd", copy);
	result("not a file of it", syscall(SYS_pidfd_getfd, file, 77, 0));
	waited("not yet", P_PIDFD, file, WEXITED | WNOHANG);
	result("write", write(copy, "x", 1));
	struct pollfd one = { .fd = file, .events = POLLIN };
	result("poll", poll(&one, 1, -1));
	events("ended", (unsigned short)one.revents);
	waited("look", P_PIDFD, file, WEXITED | WNOWAIT);
	waited("wait", P_PIDFD, file, WEXITED);
	waited("again", P_PIDFD, file, WEXITED);
	result("signal", syscall(SYS_pidfd_send_signal, file, SIGTERM, NULL, 0));
	waited("no options", P_ALL, 0, 0);
	waited("a kind that does not exist", 9, 0, WEXITED);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	file = (int)syscall(SYS_pidfd_open, pid, O_NONBLOCK);
	waited("does not wait", P_PIDFD, file, WEXITED);
	result("kill", syscall(SYS_pidfd_send_signal, file, SIGTERM, NULL, 0));
	reap("killed", pid);
}

CASE(clone3)
{
	int file = -1;
	struct clone_args arguments = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&file, .exit_signal = SIGCHLD };
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
	if (!pid)
		_exit(3);
	worked("clone3", pid);
	worked("pidfd", file);
	waited("wait", P_PIDFD, file, WEXITED);
	result("too short", syscall(SYS_clone3, &arguments, 8));
	arguments.flags = 1ULL << 60;
	result("flags", syscall(SYS_clone3, &arguments, sizeof arguments));
	arguments = (struct clone_args){ .flags = CLONE_THREAD };
	result("half a thread", syscall(SYS_clone3, &arguments, sizeof arguments));
	arguments = (struct clone_args){ .stack = 4096 };
	result("half a stack", syscall(SYS_clone3, &arguments, sizeof arguments));
}

CASE(shared_pages)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[256];
	*page = 1;
	pid_t pid = fork();
	if (!pid) {
		FILE *file = fopen("/proc/self/smaps", "r");
		unsigned long start, end, size;
		int here = 0;
		while (fgets(line, sizeof line, file)) {
			if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
				here = start <= (unsigned long)page && (unsigned long)page < end;
			else if (here && sscanf(line, "Shared_Dirty: %lu kB", &size) == 1)
				say("what was written before the fork is shared and dirty: %d", size >= 4);
		}
		_exit(0);
	}
	reap("child", pid);
}
