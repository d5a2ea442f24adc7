/* calls CASE: makes system calls of one theme and prints what the kernel did. Without an argument: lists the cases. */
#define _GNU_SOURCE
#include "calls.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const struct calls_case __start_cases[], __stop_cases[];

void
say(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	fflush(stdout);
}

void
result(const char *what, long value)
{
	if (value == -1)
		say("%s: %s", what, strerrorname_np(errno));
	else
		say("%s: %ld", what, value);
}

void
worked(const char *what, long value)
{
	say("%s: %s", what, value == -1 ? strerrorname_np(errno) : "ok");
}

void
events(const char *what, unsigned set)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {
		{ POLLIN, "IN" }, { POLLPRI, "PRI" }, { POLLOUT, "OUT" }, { POLLERR, "ERR" }, { POLLHUP, "HUP" },
		{ POLLNVAL, "NVAL" }, { POLLRDNORM, "RDNORM" }, { POLLRDBAND, "RDBAND" }, { POLLWRNORM, "WRNORM" },
		{ POLLWRBAND, "WRBAND" }, { 0x2000, "RDHUP" },
	};
	printf("%s:", what);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (set & names[i].bit)
			printf(" %s", names[i].name);
	if (!set)
		printf(" nothing");
	putchar('\n');
	fflush(stdout);
}

void
bytes(const char *what, const void *data, long size)
{
	if (size < 0) {
		result(what, size);
		return;
	}
	printf("%s: %ld \"", what, size);
	for (long i = 0; i < size; i++) {
		unsigned char one = ((const unsigned char *)data)[i];
		if (one >= ' ' && one < 127)
			putchar(one);
		else
			printf("\\%02x", one);
	}
	puts("\"");
	fflush(stdout);
}

void
reap(const char *what, pid_t pid)
{
	int status;
	if (waitpid(pid, &status, 0) != pid)
		say("%s: no child", what);
	else if (WIFSIGNALED(status))
		say("%s: signal %d", what, WTERMSIG(status));
	else
		say("%s: exit %d", what, WEXITSTATUS(status));
}

unsigned
polled(int fd)
{
	struct pollfd one = { .fd = fd, .events = (short)0x3fff };
	poll(&one, 1, 0);
	return (unsigned short)one.revents;
}

void *volatile const nowhere = (void *)8;

void
on(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };
	sigaction(number, &action, NULL);
}

void
sleep_ms(int milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
	nanosleep(&time, NULL);
}

int
main(int argc, char **argv)
{
	for (const struct calls_case *one = __start_cases; one < __stop_cases; one++) {
		if (argc < 2)
			puts(one->name);
		else if (!strcmp(one->name, argv[1])) {
			one->run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
