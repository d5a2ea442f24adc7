/* Pseudo-terminals: lines and their editing, raw bytes, sizes, sessions and signals. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char buffer[256];
static volatile sig_atomic_t count, last;

static void
on_signal(int number)
{
	count++;
	last = number;
}

static int
open_pair(int *slave)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	worked("posix_openpt", master);
	*slave = open("/dev/pts/999", O_RDWR);
	worked("one that is not there", *slave);
	char *name = ptsname(master);
	worked("locked", open(name, O_RDWR | O_NOCTTY));
	result("grantpt", grantpt(master));
	result("unlockpt", unlockpt(master));
	*slave = open(name, O_RDWR | O_NOCTTY | O_NONBLOCK);
	worked("open", *slave);
	return master;
}

static void
typed(int master, const char *text)
{
	if (write(master, text, strlen(text)) != (long)strlen(text))
		say("not typed");
	sleep_ms(5); /* a real kernel's worker passes it on */
}

static void
got(const char *what, int fd)
{
	sleep_ms(5);
	long size = read(fd, buffer, sizeof buffer);
	bytes(what, buffer, size);
}

CASE(terminal_lines)
{
	int slave, master = open_pair(&slave);
	struct termios settings;
	result("isatty", isatty(slave));
	result("isatty", isatty(master));
	result("tcgetattr", tcgetattr(slave, &settings));
	say("flags %x %x %x %x", settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag);
	bytes("characters", settings.c_cc, 17);
	events("nothing typed", polled(slave));
	events("nothing written", polled(master));
	result("read", read(slave, buffer, 10));
	result("read", read(master, buffer, 10));
	typed(master, "hel");
	result("half a line", read(slave, buffer, 10));
	got("echo", master);
	typed(master, "lo\rnext");
	events("a line", polled(slave));
	int held = 0;
	ioctl(slave, FIONREAD, &held);
	result("bytes", held);
	result("three of them", read(slave, buffer, 3));
	got("the rest", slave);
	got("echo", master);
	typed(master, "\x15word other\x17\x7f!\n");
	got("edited", slave);
	got("echo", master);
	typed(master, "end\x04");
	got("without an end of line", slave);
	typed(master, "\x04");
	got("end of file", slave);
	typed(master, "a\x16\x03""b\x01\n");
	got("literal", slave);
	got("echo", master);
	result("write", write(slave, "one\ntwo\tx\n", 10));
	got("the screen", master);
	typed(master, "dropped");
	result("flush", tcflush(slave, TCIFLUSH));
	typed(master, "kept\n");
	got("after a flush", slave);
	settings.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
	settings.c_oflag &= ~(tcflag_t)OPOST;
	settings.c_iflag &= ~(tcflag_t)ICRNL;
	tcflush(master, TCIOFLUSH);
	while (read(master, buffer, sizeof buffer) > 0)
		;
	result("raw", tcsetattr(slave, TCSANOW, &settings));
	typed(master, "x\r\x04");
	got("raw", slave);
	result("no echo", read(master, buffer, 10));
	result("write", write(slave, "one\ntwo\n", 8));
	got("the screen", master);
	settings.c_cc[VMIN] = 4;
	tcsetattr(slave, TCSANOW, &settings);
	typed(master, "abc");
	events("three of four", polled(slave));
	typed(master, "d");
	events("four", polled(slave));
	got("four", slave);
	settings.c_cc[VMIN] = 0;
	settings.c_cc[VTIME] = 1;
	tcsetattr(slave, TCSANOW, &settings);
	fcntl(slave, F_SETFL, 0);
	result("a tenth of a second", read(slave, buffer, 10));
	settings.c_cc[VTIME] = 0;
	tcsetattr(slave, TCSANOW, &settings);
	result("at once", read(slave, buffer, 10));
	close(slave);
	events("nobody has it open", polled(master));
	result("read", read(master, buffer, 10));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	events("open again", polled(master));
	close(master);
	events("hung up", polled(slave));
	result("read", read(slave, buffer, 10));
	result("write", write(slave, buffer, 10));
	result("tcgetattr", tcgetattr(slave, &settings));
}

CASE(terminal_sessions)
{
	int slave, master = open_pair(&slave);
	struct winsize window = { 24, 80, 0, 0 }, told = { 0 };
	result("set the size", ioctl(master, TIOCSWINSZ, &window));
	result("tell the size", ioctl(slave, TIOCGWINSZ, &told));
	say("%d by %d", told.ws_row, told.ws_col);
	result("no group", tcgetpgrp(slave));
	result("no session", tcgetsid(slave));
	fcntl(slave, F_SETFL, 0);
	pid_t pid = fork();
	if (!pid) {
		close(master);
		worked("setsid", setsid());
		worked("no terminal", open("/dev/tty", O_RDWR));
		result("take control", ioctl(slave, TIOCSCTTY, 0));
		result("group", tcgetpgrp(slave) == getpid());
		result("session", tcgetsid(slave) == getpid());
		int tty = open("/dev/tty", O_RDWR);
		worked("the terminal", tty);
		result("write", write(tty, "hello", 5));
		on(SIGINT, on_signal);
		on(SIGTSTP, on_signal);
		on(SIGWINCH, on_signal);
		on(SIGTTOU, on_signal);
		result("ready", write(slave, "!", 1));
		while (!count)
			pause();
		result("signal", last);
		while (count < 2)
			pause();
		result("signal", last);
		while (count < 3)
			pause();
		result("signal", last);
		pid_t child = fork();
		if (!child) {
			setpgid(0, 0);
			result("in the background", tcgetpgrp(tty) == getpid());
			read(tty, buffer, 1);
			say("continued");
			_exit(0);
		}
		int status;
		waitpid(child, &status, WUNTRACED);
		say("stopped by %d", WIFSTOPPED(status) ? WSTOPSIG(status) : 0);
		result("to the foreground", tcsetpgrp(tty, child));
		result("it is", tcgetpgrp(tty) == child);
		kill(child, SIGCONT);
		reap("child", child);
		signal(SIGTTOU, SIG_IGN);
		result("back", tcsetpgrp(tty, getpid()));
		result("another session", tcsetpgrp(tty, getppid()));
		on(SIGHUP, on_signal);
		count = 0;
		result("ready", write(slave, "?", 1));
		while (count < 1)
			pause();
		say("hung up: %d", last == SIGHUP || last == SIGCONT);
		_exit(9);
	}
	fcntl(master, F_SETFL, 0);
	long size = 0;
	while (size < 6)
		size += read(master, buffer + size, 20);
	char written[16];
	memcpy(written, buffer, 6);
	typed(master, "\x03");
	sleep_ms(20);
	typed(master, "\x1a");
	sleep_ms(20);
	window.ws_col = 132;
	int changed = ioctl(master, TIOCSWINSZ, &window);
	sleep_ms(50);
	typed(master, "line\n");
	do
		size = read(master, buffer, sizeof buffer);
	while (size > 0 && !memchr(buffer, '?', (size_t)size));
	close(slave);
	close(master);
	reap("session", pid);
	bytes("written", written, 6);
	result("another size", changed);
}
