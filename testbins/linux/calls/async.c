/* Signals that tell of a file's events (O_ASYNC). */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

static int wanted_fd;

/* Prints the signals that wait, and takes them. */
static void
told(const char *what)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGRTMIN + 3);
	struct timespec none = { 0, 0 };
	siginfo_t info;
	int number, count = 0;
	while ((number = sigtimedwait(&set, &info, &none)) > 0) {
		count++;
		if (number == SIGIO && info.si_code == SI_KERNEL)
			say("%s: SIGIO of the kernel", what);
		else
			say("%s: %s code %d band %#lx fd %s", what, number == SIGIO ? "SIGIO" : "SIGRTMIN+3", info.si_code,
			    (unsigned long)info.si_band, info.si_fd == wanted_fd ? "as asked" : "another");
	}
	if (!count)
		say("%s: no signal", what);
}

static void
block(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static void
asynchronous(int fd, int number)
{
	wanted_fd = fd;
	result("F_SETOWN", fcntl(fd, F_SETOWN, getpid()));
	if (number)
		result("F_SETSIG", fcntl(fd, F_SETSIG, number));
	result("F_SETFL", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
	say("O_ASYNC: %d", (fcntl(fd, F_GETFL) & O_ASYNC) != 0);
}

static void
put(int fd, const char *text, long size)
{
	if (write(fd, text, (size_t)size) != size)
		say("write failed");
}

static void
get(int fd, long size)
{
	char data[8192];
	if (read(fd, data, (size_t)size) < 0)
		say("read failed");
}

CASE(async_pipes)
{
	int ends[2], others[2];
	block();
	if (pipe(ends) || pipe(others))
		abort();
	wanted_fd = ends[0];
	result("nobody", fcntl(ends[0], F_SETFL, O_ASYNC));
	put(ends[1], "a", 1);
	told("nobody");
	asynchronous(ends[0], 0);
	put(ends[1], "b", 1);
	told("written");
	put(ends[1], "c", 1);
	put(ends[1], "d", 1);
	told("written twice");
	get(ends[0], 2);
	told("read");
	fcntl(ends[0], F_SETSIG, SIGRTMIN + 3);
	put(ends[1], "e", 1);
	put(ends[1], "f", 1);
	told("real-time signals queue");
	fcntl(ends[0], F_SETSIG, SIGIO);
	put(ends[1], "g", 1);
	told("SIGIO that was asked for");
	fcntl(ends[0], F_SETFL, 0);
	put(ends[1], "h", 1);
	told("no longer");
	int on = 1;
	result("FIOASYNC", ioctl(ends[0], FIOASYNC, &on));
	put(ends[1], "i", 1);
	told("FIOASYNC");
	close(ends[1]);
	told("the writer is gone");

	asynchronous(others[1], SIGRTMIN + 3);
	put(others[1], "abcd", 4);
	told("the writer writes");
	get(others[0], 2);
	told("some is read");
	get(others[0], 2);
	told("all is read");
	close(others[0]);
	told("the reader is gone");
}

CASE(async_sockets)
{
	int ends[2], datagrams[2];
	block();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams))
		abort();
	asynchronous(ends[0], SIGRTMIN + 3);
	put(ends[1], "a", 1);
	told("sent");
	put(ends[1], "b", 1);
	told("sent again");
	put(ends[0], "c", 1);
	told("it sends");
	get(ends[1], 1);
	told("that is received");
	shutdown(ends[1], SHUT_WR);
	told("the other will send no more");
	close(ends[1]);
	told("the other is gone");

	asynchronous(datagrams[0], SIGRTMIN + 3);
	put(datagrams[1], "a", 1);
	told("a datagram");
	close(datagrams[1]);
	told("its sender is gone");

	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0async" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
	result("bind", bind(listener, (void *)&name, sizeof name));
	result("listen", listen(listener, 4));
	asynchronous(listener, SIGRTMIN + 3);
	result("connect", connect(client, (void *)&name, sizeof name));
	told("a connection");
	close(client);
	told("given up");
}

CASE(async_room)
{
	int ends[2], datagrams[2];
	char page[4096] = "";
	block();
	if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, datagrams))
		abort();
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	asynchronous(ends[1], SIGRTMIN + 3);
	for (int i = 0; i < 16; i++)
		put(ends[1], page, 4096);
	told("full");
	result("no room", write(ends[1], page, 4096));
	get(ends[0], 4096);
	told("a page is read");
	get(ends[0], 4096);
	told("another page is read");

	fcntl(datagrams[0], F_SETFL, O_NONBLOCK);
	asynchronous(datagrams[0], SIGRTMIN + 3);
	while (write(datagrams[0], page, 4096) == 4096)
		;
	told("a full socket");
	for (int i = 0; i < 20; i++)
		get(datagrams[1], 4096);
	told("some is received");
	while (recv(datagrams[1], page, 4096, MSG_DONTWAIT) > 0)
		;
	told("all is received");
}

CASE(async_terminals)
{
	int master, slave;
	block();
	if (openpty(&master, &slave, NULL, NULL, NULL))
		abort();
	struct termios mode;
	tcgetattr(slave, &mode);
	mode.c_lflag &= ~(tcflag_t)ECHO;
	tcsetattr(slave, TCSANOW, &mode);
	asynchronous(slave, SIGRTMIN + 3);
	put(master, "ab", 2);
	told("part of a line");
	put(master, "c\n", 2);
	struct pollfd line = { .fd = slave, .events = POLLIN };
	result("poll", poll(&line, 1, 1000));
	told("a line");
	close(master);
	told("hung up");
}

CASE(async_kinds)
{
	block();
	int counter = eventfd(0, 0), file = open("/tmp", O_RDONLY), on = 1;
	result("an event counter", fcntl(counter, F_SETFL, O_ASYNC));
	say("O_ASYNC: %d", (fcntl(counter, F_GETFL) & O_ASYNC) != 0);
	result("FIOASYNC", ioctl(counter, FIOASYNC, &on));
	result("a directory", ioctl(file, FIOASYNC, &on));
	on = 0;
	result("off", ioctl(counter, FIOASYNC, &on));
	result("no number", ioctl(counter, FIOASYNC, nowhere));

	int watch = inotify_init();
	result("inotify", inotify_add_watch(watch, "/tmp", IN_CREATE | IN_DELETE));
	asynchronous(watch, SIGRTMIN + 3);
	close(open("/tmp/async-file", O_CREAT | O_RDWR, 0600));
	told("a file was made");
	unlink("/tmp/async-file");
	told("and removed");
}

static volatile sig_atomic_t signals;

static void
count(int number)
{
	(void)number;
	signals++;
}

CASE(async_handlers)
{
	int ends[2];
	if (pipe(ends))
		abort();
	setpgid(0, 0);
	on(SIGIO, count);
	asynchronous(ends[0], 0);
	pid_t child = fork();
	if (!child) {
		say("the child inherits: %d", (fcntl(ends[0], F_GETFL) & O_ASYNC) != 0);
		close(ends[0]);
		put(ends[1], "x", 1);
		_exit(0);
	}
	reap("child", child);
	say("signals: %d", signals);
	int copy = dup(ends[0]);
	close(ends[0]);
	put(ends[1], "y", 1);
	say("a copy is open: %d", signals);
	close(copy);
	signals = 0;
	signal(SIGPIPE, SIG_IGN);
	result("nobody reads", write(ends[1], "z", 1));
	say("signals: %d", signals);
	if (pipe(ends))
		abort();
	fcntl(ends[0], F_SETOWN, -getpgrp());
	fcntl(ends[0], F_SETFL, O_ASYNC);
	put(ends[1], "x", 1);
	say("to the group: %d", signals);
	struct f_owner_ex thread = { F_OWNER_TID, gettid() };
	fcntl(ends[0], F_SETOWN_EX, &thread);
	put(ends[1], "x", 1);
	say("to the thread: %d", signals);
}
