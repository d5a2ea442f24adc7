/* Pipes and FIFOs: how they are opened, filled, resized and hung up. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

static void
on_signal(int number)
{
	(void)number;
	signals++;
}

static int
held(int fd)
{
	int count = -1;
	ioctl(fd, FIONREAD, &count);
	return count;
}

CASE(pipes)
{
	int ends[2];
	char buffer[8192] = { 0 };
	result("pipe2", pipe2(ends, O_NONBLOCK | O_CLOEXEC));
	result("pipe2 with a flag that does not exist", pipe2(ends, 0x10));
	result("pipe2 to a bad address", pipe2(nowhere, 0));
	events("an empty pipe, to read", polled(ends[0]));
	events("an empty pipe, to write", polled(ends[1]));
	result("read from an empty pipe", read(ends[0], buffer, 10));
	result("read nothing", read(ends[0], buffer, 0));
	result("write", write(ends[1], "hello", 5));
	events("to read", polled(ends[0]));
	result("bytes", held(ends[0]));
	long got = read(ends[0], buffer, 3);
	bytes("read", buffer, got);
	result("write to the end that reads", write(ends[0], "x", 1));
	result("read from the end that writes", read(ends[1], buffer, 1));
	result("seek", lseek(ends[0], 0, SEEK_SET));
	result("pread", pread(ends[0], buffer, 1, 0));
	got = read(ends[0], buffer, 100);
	bytes("the rest", buffer, got);

	result("size", fcntl(ends[0], F_GETPIPE_SZ));
	long filled = 0, count;
	while ((count = write(ends[1], buffer, 4096)) > 0)
		filled += count;
	result("full", count);
	result("held", filled);
	events("full, to write", polled(ends[1]));
	got = read(ends[0], buffer, 4095);
	result("write a byte where a page is not empty", write(ends[1], "x", 1));
	got = read(ends[0], buffer, 1);
	result("write a byte where a page is", write(ends[1], "x", 1));
	result("write a page more", write(ends[1], buffer, 4096));
	result("shrink what is full", fcntl(ends[1], F_SETPIPE_SZ, 4096));
	result("grow", fcntl(ends[1], F_SETPIPE_SZ, 100000));
	result("size", fcntl(ends[1], F_GETPIPE_SZ));
	result("write more than fits", write(ends[1], buffer, 8192));
	result("the size of what is not a pipe", fcntl(open("/dev/null", O_RDONLY), F_GETPIPE_SZ));

	close(ends[1]);
	events("nobody writes, but data is there", polled(ends[0]));
	while (read(ends[0], buffer, sizeof buffer) > 0)
		;
	events("nobody writes", polled(ends[0]));
	result("read", read(ends[0], buffer, 1));

	signal(SIGPIPE, on_signal);
	result("pipe", pipe(ends));
	close(ends[0]);
	events("nobody reads", polled(ends[1]));
	result("write", write(ends[1], "x", 1));
	result("SIGPIPE", signals);
	result("write nothing", write(ends[1], "x", 0));
}

CASE(packets)
{
	int ends[2];
	char buffer[64];
	result("pipe2", pipe2(ends, O_DIRECT | O_NONBLOCK));
	result("flags", (fcntl(ends[1], F_GETFL) & O_DIRECT) == O_DIRECT);
	result("write", write(ends[1], "first", 5));
	result("write", write(ends[1], "second", 6));
	result("bytes", held(ends[0]));
	long got = read(ends[0], buffer, 3);
	bytes("the rest of a packet is lost", buffer, got);
	got = read(ends[0], buffer, 64);
	bytes("the second", buffer, got);
	got = read(ends[0], buffer, 64);
	bytes("no more", buffer, got);
}

CASE(blocked_writer)
{
	int ends[2];
	static char data[200000];
	result("pipe", pipe(ends));
	pid_t pid = fork();
	if (!pid) {
		close(ends[0]);
		for (unsigned i = 0; i < sizeof data; i++)
			data[i] = (char)(i * 7);
		_exit(write(ends[1], data, sizeof data) != sizeof data);
	}
	close(ends[1]);
	long total = 0, got;
	unsigned wrong = 0;
	while ((got = read(ends[0], data, 5000)) > 0) {
		for (long i = 0; i < got; i++)
			wrong += data[i] != (char)((total + i) * 7);
		total += got;
	}
	result("received", total);
	result("wrong", wrong);
	reap("writer", pid);
}

CASE(fifos)
{
	char name[] = "/tmp/calls-XXXXXX", buffer[64], path[96];
	if (!mkdtemp(name))
		exit(1);
	snprintf(path, sizeof path, "%s/fifo", name);
	result("mkfifo", mkfifo(path, 0600));
	result("again", mkfifo(path, 0600));
	worked("to write, nobody reads, no wait", open(path, O_WRONLY | O_NONBLOCK));
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	worked("to read, nobody writes, no wait", reader);
	events("nobody has written yet", polled(reader));
	result("read", read(reader, buffer, 1));
	int writer = open(path, O_WRONLY | O_NONBLOCK);
	worked("to write, somebody reads", writer);
	result("read", read(reader, buffer, 1));
	events("a writer", polled(reader));
	close(writer);
	events("the writer is gone", polled(reader));
	int both = open(path, O_RDWR);
	worked("both", both);
	result("write", write(both, "both", 4));
	long got = read(both, buffer, 64);
	bytes("read", buffer, got);
	close(both);
	close(reader);

	/* A writer that comes and goes before the reader looks: the open counts. */
	pid_t pid = fork();
	if (!pid) {
		sleep_ms(30);
		writer = open(path, O_WRONLY);
		got = write(writer, "hi", 2);
		_exit(got != 2);
	}
	reader = open(path, O_RDONLY);
	worked("waited for a writer", reader);
	got = read(reader, buffer, 64);
	bytes("read", buffer, got);
	result("the end", read(reader, buffer, 64));
	close(reader);
	reap("writer", pid);

	pid = fork();
	if (!pid) {
		sleep_ms(30);
		reader = open(path, O_RDONLY);
		_exit(read(reader, buffer, 64) != 3);
	}
	writer = open(path, O_WRONLY);
	worked("waited for a reader", writer);
	result("write", write(writer, "abc", 3));
	close(writer);
	reap("reader", pid);

	on(SIGALRM, on_signal);
	ualarm(20000, 0);
	worked("interrupted", open(path, O_RDONLY));
	worked("to write: the interrupted one is gone", open(path, O_WRONLY | O_NONBLOCK));
	unlink(path);
	rmdir(name);
}

CASE(reopened_pipe)
{
	int ends[2];
	char buffer[64], path[64];
	result("pipe", pipe(ends));
	snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
	result("write", write(ends[1], "data", 4));
	int again = open(path, O_RDONLY);
	worked("open it again to read", again);
	long got = read(again, buffer, 2);
	bytes("read", buffer, got);
	int writer = open(path, O_WRONLY);
	worked("open the end that reads to write", writer);
	result("write", write(writer, "more", 4));
	close(writer);
	close(ends[1]);
	got = read(ends[0], buffer, 64);
	bytes("read by the first", buffer, got);
	result("the end", read(again, buffer, 1));
	close(again);
	close(ends[0]);
	struct stat status;
	result("pipe", pipe(ends));
	result("fstat", fstat(ends[0], &status));
	result("a FIFO", S_ISFIFO(status.st_mode));
	result("permissions", status.st_mode & 07777);
}
