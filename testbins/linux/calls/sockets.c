/* Sockets between processes: pairs, names, connections, messages with files and credentials. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static char buffer[1024];

static socklen_t
address(struct sockaddr_un *to, const char *name)
{
	memset(to, 0, sizeof *to);
	to->sun_family = AF_UNIX;
	strcpy(to->sun_path + (*name == '@'), name + (*name == '@'));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + (*name != '@'));
}

static void
name_of(const char *what, int (*call)(int, struct sockaddr *, socklen_t *), int fd)
{
	struct sockaddr_un known;
	socklen_t size = sizeof known;
	memset(&known, 0, sizeof known);
	if (call(fd, (struct sockaddr *)&known, &size) < 0) {
		result(what, -1);
		return;
	}
	say("%s: family %d, size %u, %s%s", what, known.sun_family, size, size > 2 && !known.sun_path[0] ? "@" : "",
	    known.sun_path + (size > 2 && !known.sun_path[0]));
}

static int
number(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof value;
	return getsockopt(fd, SOL_SOCKET, option, &value, &size) ? -1 : value;
}

CASE(socketpair)
{
	int ends[2];
	signal(SIGPIPE, SIG_IGN);
	result("a family that does not exist", socketpair(77, SOCK_STREAM, 0, ends));
	result("a type that does not exist", socketpair(AF_UNIX, 9, 0, ends));
	result("a protocol that does not exist", socketpair(AF_UNIX, SOCK_STREAM, 7, ends));
	result("socketpair", socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
	events("new", polled(ends[0]));
	name_of("getsockname", getsockname, ends[0]);
	name_of("getpeername", getpeername, ends[0]);
	result("type", number(ends[0], SO_TYPE));
	result("domain", number(ends[0], SO_DOMAIN));
	result("listening", number(ends[0], SO_ACCEPTCONN));
	result("receive", recv(ends[0], buffer, 10, 0));
	result("write", write(ends[1], "one", 3));
	result("send", send(ends[1], "two", 3, 0));
	int count = 0;
	result("ioctl", ioctl(ends[0], FIONREAD, &count));
	result("bytes", count);
	long got = recv(ends[0], buffer, 4, MSG_PEEK);
	bytes("peek", buffer, got);
	got = read(ends[0], buffer, 100);
	bytes("streams have no borders", buffer, got);
	result("MSG_OOB from a pair", recv(ends[0], buffer, 10, MSG_OOB) < 0);
	result("shutdown", shutdown(ends[1], SHUT_WR));
	result("write", write(ends[1], "x", 1));
	events("the other end", polled(ends[0]));
	events("this end", polled(ends[1]));
	result("read", read(ends[0], buffer, 1));
	result("the other direction", write(ends[0], "back", 4));
	got = read(ends[1], buffer, 10);
	bytes("read", buffer, got);
	result("a wrong direction", shutdown(ends[0], 3));
	close(ends[1]);
	events("closed", polled(ends[0]));
	result("write", write(ends[0], "x", 1));
	result("seek", lseek(ends[0], 0, SEEK_SET));
	close(ends[0]);

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	result("write", write(ends[0], "unread", 6));
	close(ends[1]);
	events("closed with data that nobody read", polled(ends[0]));
	result("SO_ERROR", number(ends[0], SO_ERROR));
	result("SO_ERROR again", number(ends[0], SO_ERROR));
	result("read", read(ends[0], buffer, 1));
}

CASE(datagrams)
{
	int ends[2];
	socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
	result("write", write(ends[0], "first", 5));
	result("write", write(ends[0], "second", 6));
	result("write nothing", send(ends[0], "", 0, 0));
	long got = recv(ends[1], buffer, 3, 0);
	bytes("the rest of a datagram is lost", buffer, got);
	struct iovec part = { buffer, 2 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	got = recvmsg(ends[1], &header, MSG_TRUNC);
	result("its whole size", got);
	result("MSG_TRUNC", header.msg_flags == MSG_TRUNC);
	result("an empty one", recv(ends[1], buffer, 10, 0));
	result("no more", recv(ends[1], buffer, 10, MSG_DONTWAIT));
	events("a pair of datagrams", polled(ends[0]));
	close(ends[1]);
	result("nobody is there", write(ends[0], "x", 1));
	events("nobody is there", polled(ends[0]));
	close(ends[0]);

	struct sockaddr_un here, there;
	int server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), client = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t size = address(&here, "@trapline-datagrams");
	result("bind", bind(server, (struct sockaddr *)&here, size));
	result("the name is taken", bind(client, (struct sockaddr *)&here, size));
	result("no address", send(client, "x", 1, 0));
	result("sendto", sendto(client, "anonymous", 9, 0, (struct sockaddr *)&here, size));
	socklen_t known = sizeof there;
	got = recvfrom(server, buffer, 100, 0, (struct sockaddr *)&there, &known);
	bytes("received", buffer, got);
	result("the sender has no name", known);
	socklen_t other = address(&there, "@trapline-client");
	result("bind", bind(client, (struct sockaddr *)&there, other));
	result("connect", connect(client, (struct sockaddr *)&here, size));
	result("send", send(client, "named", 5, 0));
	known = sizeof there;
	got = recvfrom(server, buffer, 100, 0, (struct sockaddr *)&there, &known);
	bytes("received", buffer, got);
	bytes("from", there.sun_path, (long)known - 2);
	result("answer", sendto(server, "answer", 6, 0, (struct sockaddr *)&there, known));
	got = recv(client, buffer, 100, 0);
	bytes("answered", buffer, got);
	result("connected to another", connect(server, (struct sockaddr *)&here, 2));
	int sent = 0;
	while (send(client, "x", 1, MSG_DONTWAIT) == 1)
		sent++;
	result("waiting datagrams", sent);
	events("full", polled(client));
	address(&there, "@nobody");
	result("no such name", sendto(client, "x", 1, 0, (struct sockaddr *)&there, size));
}

CASE(packets_in_order)
{
	int ends[2];
	signal(SIGPIPE, SIG_IGN);
	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
	result("send", send(ends[0], "first", 5, 0));
	result("send", send(ends[0], "second", 6, MSG_EOR));
	long got = recv(ends[1], buffer, 100, 0);
	bytes("first", buffer, got);
	got = recv(ends[1], buffer, 2, 0);
	bytes("second", buffer, got);
	shutdown(ends[0], SHUT_RDWR);
	events("shut down", polled(ends[1]));
	result("the end", recv(ends[1], buffer, 2, 0));
	result("send", send(ends[1], "x", 1, MSG_NOSIGNAL));
	int lonely = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	events("not connected", polled(lonely));
	result("send", send(lonely, "x", 1, 0));
	result("receive", recv(lonely, buffer, 1, 0));
	lonely = socket(AF_UNIX, SOCK_STREAM, 0);
	events("a stream", polled(lonely));
	result("send", send(lonely, "x", 1, 0));
	result("receive", recv(lonely, buffer, 1, 0));
	result("accept", accept(lonely, NULL, NULL));
	result("listen", listen(lonely, 1));
	result("not a socket", listen(0, 1));
	result("not a file", listen(99, 1));
	result("a network", socket(AF_UNIX, SOCK_STREAM, 99));
}

static void
serve(const char *name)
{
	struct sockaddr_un here;
	socklen_t size = address(&here, name);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), early = socket(AF_UNIX, SOCK_STREAM, 0);
	result("connect to nobody", connect(early, (struct sockaddr *)&here, size));
	result("bind", bind(listener, (struct sockaddr *)&here, size));
	result("bind again", bind(listener, (struct sockaddr *)&here, size));
	result("connect before listen", connect(early, (struct sockaddr *)&here, size));
	result("listen", listen(listener, 2));
	result("listening", number(listener, SO_ACCEPTCONN));
	events("nobody came", polled(listener));
	result("connect", connect(early, (struct sockaddr *)&here, size));
	result("connect twice", connect(early, (struct sockaddr *)&here, size));
	events("somebody came", polled(listener));
	events("connected", polled(early));
	result("send before accept", send(early, "early", 5, 0));
	pid_t pid = fork();
	if (!pid) {
		int client = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(client, (struct sockaddr *)&here, size))
			_exit(1);
		if (write(client, "child", 5) != 5 || shutdown(client, SHUT_WR))
			_exit(2);
		long got = read(client, buffer, 100);
		_exit(got == 6 ? 0 : 3);
	}
	struct sockaddr_un who;
	socklen_t known = sizeof who;
	int served = accept4(listener, (struct sockaddr *)&who, &known, SOCK_CLOEXEC);
	worked("accept", served);
	result("the size of its name", known);
	long got = read(served, buffer, 100);
	bytes("read", buffer, got);
	struct ucred peer;
	known = sizeof peer;
	result("SO_PEERCRED", getsockopt(served, SOL_SOCKET, SO_PEERCRED, &peer, &known));
	result("it is this process", peer.pid == getpid());
	int second = accept(listener, NULL, NULL);
	getsockopt(second, SOL_SOCKET, SO_PEERCRED, &peer, &known);
	result("it is the child", peer.pid == pid);
	while ((got = read(second, buffer, 100)) > 0)
		bytes("read", buffer, got);
	result("write", write(second, "answer", 6));
	reap("the child", pid);
	name_of("getsockname", getsockname, second);
	name_of("getpeername", getpeername, early);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	result("no more", accept(listener, NULL, NULL));
	int waiting = socket(AF_UNIX, SOCK_STREAM, 0);
	connect(waiting, (struct sockaddr *)&here, size);
	close(listener);
	events("never accepted", polled(waiting));
	result("read", read(waiting, buffer, 1));
	result("connect to what was closed", connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&here, size));
}

CASE(connections)
{
	char directory[] = "/tmp/calls-XXXXXX", path[64];
	signal(SIGPIPE, SIG_IGN);
	say("-- abstract");
	serve("@trapline-connections");
	if (!mkdtemp(directory) || chdir(directory))
		exit(1);
	say("-- in the file system");
	serve("socket");
	struct stat status;
	result("stat", stat("socket", &status));
	result("a socket", S_ISSOCK(status.st_mode));
	worked("open", open("socket", O_RDWR));
	int again = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un here;
	result("the name is taken", bind(again, (struct sockaddr *)&here, address(&here, "socket")));
	result("unlink", unlink("socket"));
	result("the name is free", bind(again, (struct sockaddr *)&here, address(&here, "socket")));
	unlink("socket");
	int any = socket(AF_UNIX, SOCK_DGRAM, 0);
	here.sun_family = AF_UNIX;
	result("any name", bind(any, (struct sockaddr *)&here, 2));
	socklen_t size = sizeof here;
	getsockname(any, (struct sockaddr *)&here, &size);
	result("its size", size);
	result("too long", bind(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&here, 200));
	snprintf(path, sizeof path, "/");
	if (chdir(path) || rmdir(directory))
		say("rmdir");
}

CASE(descriptors_sent)
{
	int ends[2], pipes[2], taken[4] = { -1, -1, -1, -1 };
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	result("pipe", pipe(pipes));
	union {
		char space[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { "data", 4 };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(2 * sizeof(int)) };
	struct cmsghdr *one = CMSG_FIRSTHDR(&header);
	one->cmsg_level = SOL_SOCKET;
	one->cmsg_type = SCM_RIGHTS;
	one->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(one), pipes, sizeof pipes);
	result("write", write(ends[0], "before ", 7));
	result("sendmsg", sendmsg(ends[0], &header, 0));
	result("write", write(ends[0], "after", 5));
	close(pipes[0]);
	part = (struct iovec){ buffer, 100 };
	header.msg_controllen = sizeof control;
	long got = recvmsg(ends[1], &header, MSG_CMSG_CLOEXEC);
	bytes("received", buffer, got);
	one = CMSG_FIRSTHDR(&header);
	result("control", one != NULL);
	result("size", (long)(one->cmsg_len - CMSG_LEN(0)));
	memcpy(taken, CMSG_DATA(one), sizeof(int) * 2);
	result("close on exec", fcntl(taken[0], F_GETFD));
	result("through the pipe", write(pipes[1], "alive", 5));
	got = read(taken[0], buffer, 100);
	bytes("read", buffer, got);
	part = (struct iovec){ buffer, 100 };
	header.msg_controllen = sizeof control;
	got = recvmsg(ends[1], &header, 0);
	bytes("received", buffer, got);
	result("control", (long)header.msg_controllen);

	/* No room for what was sent. */
	part = (struct iovec){ "more", 4 };
	header.msg_controllen = CMSG_SPACE(2 * sizeof(int));
	one = CMSG_FIRSTHDR(&header);
	one->cmsg_level = SOL_SOCKET;
	one->cmsg_type = SCM_RIGHTS;
	one->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(one), taken, sizeof pipes);
	result("sendmsg", sendmsg(ends[0], &header, 0));
	part = (struct iovec){ buffer, 100 };
	header.msg_controllen = 0;
	header.msg_control = NULL;
	got = recvmsg(ends[1], &header, 0);
	bytes("received", buffer, got);
	result("MSG_CTRUNC", header.msg_flags == MSG_CTRUNC);

	int on = 1;
	result("SO_PASSCRED", setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
	result("write", write(ends[0], "who", 3));
	header.msg_control = &control;
	header.msg_controllen = sizeof control;
	got = recvmsg(ends[1], &header, 0);
	bytes("received", buffer, got);
	one = &control.align;
	struct ucred who;
	memcpy(&who, CMSG_DATA(one), sizeof who);
	say("type %d, this process: %d", one->cmsg_type, who.pid == getpid());
	one->cmsg_len = 3;
	result("a length that cannot be", sendmsg(ends[0], &header, 0));
}

CASE(socket_options)
{
	int ends[2], value = 1;
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	result("send buffer", number(ends[0], SO_SNDBUF));
	result("receive buffer", number(ends[0], SO_RCVBUF));
	value = 10000;
	result("set", setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &value, sizeof value));
	result("send buffer", number(ends[0], SO_SNDBUF));
	value = 1;
	result("set", setsockopt(ends[0], SOL_SOCKET, SO_RCVBUF, &value, sizeof value));
	result("receive buffer", number(ends[0], SO_RCVBUF));
	result("set", setsockopt(ends[0], SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
	result("keep alive", number(ends[0], SO_KEEPALIVE));
	result("too short", setsockopt(ends[0], SOL_SOCKET, SO_KEEPALIVE, &value, 2));
	result("unknown", setsockopt(ends[0], SOL_SOCKET, 999, &value, sizeof value));
	result("unknown", number(ends[0], 999));
	result("another level", setsockopt(ends[0], 6, 1, &value, sizeof value));
	struct timeval limit = { 0, 20000 };
	result("time limit", setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	result("receive", recv(ends[0], buffer, 1, 0));
	socklen_t size = sizeof limit;
	limit.tv_usec = 0;
	result("time limit", getsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, &size));
	result("microseconds", limit.tv_usec);
	pid_t pid = fork();
	if (!pid) {
		for (int i = 0; i < 4; i++) {
			sleep_ms(2);
			if (write(ends[1], "abc", 3) != 3)
				_exit(1);
		}
		_exit(0);
	}
	long got = recv(ends[0], buffer, 10, MSG_WAITALL);
	bytes("all of it", buffer, got);
	reap("writer", pid);
}

/* How much fits into a socket: messages count with the memory that they take. */
CASE(socket_room)
{
	static const int kinds[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	static const int sizes[] = { 1, 192, 193, 1000, 1729, 3777, 4096, 16064, 16065, 32768, 65536 };
	static char data[65536];
	for (unsigned kind = 0; kind < 3; kind++)
		for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			int ends[2], used = 0;
			long sent = 0, count = 0, one;
			if (socketpair(AF_UNIX, kinds[kind] | SOCK_NONBLOCK, 0, ends))
				abort();
			while ((one = write(ends[0], data, (size_t)sizes[i])) > 0) {
				sent += one;
				if (!count++)
					ioctl(ends[0], TIOCOUTQ, &used);
			}
			say("%u of %d: %ld times, %ld bytes; one takes %d", kind, sizes[i], count, sent, used);
			close(ends[0]);
			close(ends[1]);
		}
}

/* Sockets that are sent through each other stay open when they are closed, until somebody needs room. */
CASE(socket_circles)
{
	long made = 0, failed = 0;
	for (int i = 0; i < 3000; i++) {
		int ends[2];
		char byte = 0, room[CMSG_SPACE(2 * sizeof(int))] = { 0 };
		struct iovec vector = { &byte, 1 };
		struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) {
			failed++;
			continue;
		}
		struct cmsghdr *control = CMSG_FIRSTHDR(&message);
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(sizeof ends);
		memcpy(CMSG_DATA(control), ends, sizeof ends);
		made += sendmsg(ends[0], &message, 0) == 1 && sendmsg(ends[1], &message, 0) == 1;
		close(ends[0]);
		close(ends[1]);
	}
	say("%ld circles, %ld failed", made, failed);
}
