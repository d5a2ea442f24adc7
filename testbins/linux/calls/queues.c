/* Message queues: of System V, and of POSIX. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct {
	long type;
	char text[9000];
} message;

static long
put(int number, long type, const char *text, int flags)
{
	message.type = type;
	strcpy(message.text, text);
	return msgsnd(number, &message, strlen(text), flags);
}

static void
take(const char *what, int number, long type, size_t size, int flags)
{
	ssize_t got = msgrcv(number, &message, size, type, flags);
	int failed = errno;
	if (!flags && got != 0)
		sleep_ms(10);
	errno = failed;
	if (got < 0)
		result(what, got);
	else
		say("%s: type %ld \"%.*s\"", what, message.type, (int)got, message.text);
}

static void
told(const char *what, int number)
{
	struct msqid_ds status;
	memset(&status, 0, sizeof status);
	result(what, msgctl(number, IPC_STAT, &status));
	say("  %lu messages %lu bytes of %lu mode %o sent %d received %d", (unsigned long)status.msg_qnum,
	    (unsigned long)status.__msg_cbytes, (unsigned long)status.msg_qbytes, status.msg_perm.mode,
	    status.msg_lspid == getpid(), status.msg_lrpid == getpid());
}

static void
on_signal(int number)
{
	(void)number;
}

CASE(messages)
{
	key_t key = 0x6d67 + getpid();
	result("not there", msgget(key, 0));
	int number = msgget(key, IPC_CREAT | IPC_EXCL | 0620);
	worked("make", number);
	told("new", number);
	say("the same: %d", msgget(key, 0) == number);
	result("exclusive", msgget(key, IPC_CREAT | IPC_EXCL));
	result("no type", put(number, 0, "x", 0));
	result("too long", msgsnd(number, &message, 8193, 0));
	result("send", put(number, 3, "three", 0));
	result("send", put(number, 1, "one", 0));
	result("send", put(number, 2, "two", 0));
	result("send", put(number, 3, "again three", 0));
	result("send", put(number, 5, "", 0));
	told("five", number);
	take("too long", number, 3, 3, 0);
	take("cut", number, 3, 3, MSG_NOERROR);
	take("the lowest", number, -2, 100, 0);
	take("any but", number, 2, 100, MSG_EXCEPT);
	take("none", number, 9, 100, IPC_NOWAIT);
	take("any", number, 0, 100, 0);
	take("any", number, 0, 100, 0);
	take("empty", number, 0, 100, IPC_NOWAIT);
	take("a negative size", number, 0, -1, IPC_NOWAIT);
	struct msqid_ds status;
	msgctl(number, IPC_STAT, &status);
	status.msg_qbytes = 10;
	result("smaller", msgctl(number, IPC_SET, &status));
	result("fits", put(number, 1, "12345678", 0));
	result("does not", put(number, 1, "123", IPC_NOWAIT));
	pid_t child = fork();
	if (child == 0) {
		long sent = put(number, 7, "123", 0);
		sleep_ms(30);
		result("waits for room", sent);
		_exit(0);
	}
	sleep_ms(30);
	take("makes room", number, 1, 100, 0);
	reap("child", child);
	take("came", number, 7, 100, 0);
	child = fork();
	if (child == 0) {
		take("waits for one", number, 4, 100, 0);
		_exit(0);
	}
	sleep_ms(30);
	result("another type", put(number, 3, "x", 0));
	result("this type", put(number, 4, "four", 0));
	reap("child", child);
	told("one left", number);
	child = fork();
	if (child == 0) {
		take("too long for one who waits", number, 4, 2, 0);
		_exit(0);
	}
	sleep_ms(30);
	result("long", put(number, 4, "four", 0));
	reap("child", child);
	take("still there", number, 4, 100, 0);
	on(SIGALRM, on_signal);
	ualarm(20000, 0);
	take("interrupted", number, 4, 100, 0);
	result("bad address", msgsnd(number, nowhere, 4, 0));
	child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		result("another user sends", put(number, 1, "x", IPC_NOWAIT));
		take("receives", number, 0, 10, IPC_NOWAIT);
		result("looks", msgctl(number, IPC_STAT, &status));
		result("removes", msgctl(number, IPC_RMID, NULL));
		_exit(0);
	}
	reap("child", child);
	child = fork();
	if (child == 0) {
		take("removed meanwhile", number, 8, 10, 0);
		_exit(0);
	}
	sleep_ms(30);
	result("remove", msgctl(number, IPC_RMID, NULL));
	reap("child", child);
	take("gone", number, 0, 10, 0);
	struct msginfo info;
	memset(&info, 0, sizeof info);
	worked("limits", msgctl(0, IPC_INFO, (struct msqid_ds *)&info));
	say("  %d %d %d", info.msgmax, info.msgmnb, info.msgmni);
}

static void
attributes(const char *what, mqd_t queue)
{
	struct mq_attr attr;
	memset(&attr, 0, sizeof attr);
	if (mq_getattr(queue, &attr))
		result(what, -1);
	else
		say("%s: flags %lo most %ld size %ld now %ld", what, attr.mq_flags, attr.mq_maxmsg, attr.mq_msgsize, attr.mq_curmsgs);
}

static void
receive(const char *what, mqd_t queue, size_t size)
{
	char text[8192];
	unsigned priority = 99;
	ssize_t got = mq_receive(queue, text, size, &priority);
	int failed = errno;
	sleep_ms(10);
	errno = failed;
	if (got < 0)
		result(what, got);
	else
		say("%s: priority %u \"%.*s\"", what, priority, (int)got, text);
}

static struct timespec
in_ms(int milliseconds)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += milliseconds * 1000000L;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

CASE(posix_queues)
{
	char name[40], text[100];
	snprintf(name, sizeof name, "/calls-%d", (int)getpid());
	result("not there", mq_open(name, O_RDWR));
	result("no name", mq_open("calls", O_RDWR | O_CREAT, 0600, NULL));
	struct mq_attr attr = { .mq_maxmsg = 0, .mq_msgsize = 16 };
	result("no messages", mq_open(name, O_RDWR | O_CREAT, 0600, &attr));
	attr.mq_maxmsg = 3;
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0640, &attr);
	worked("make", queue);
	attributes("new", queue);
	result("exclusive", mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
	events("empty", polled(queue));
	result("send", mq_send(queue, "low", 3, 1));
	result("send", mq_send(queue, "high", 4, 9));
	result("send", mq_send(queue, "low too", 7, 1));
	attributes("full", queue);
	events("full", polled(queue));
	struct timespec soon = in_ms(20);
	result("no room", mq_timedsend(queue, "x", 1, 0, &soon));
	result("too long", mq_send(queue, "12345678901234567", 17, 0));
	result("no priority", mq_send(queue, "x", 1, 32768));
	receive("no room for the longest", queue, 15);
	struct stat status;
	result("stat", fstat(queue, &status));
	say("  mode %o size %ld", status.st_mode, (long)status.st_size);
	bytes("text", text, read(queue, text, sizeof text));
	receive("first", queue, 16);
	receive("second", queue, 16);
	receive("third", queue, 16);
	soon = in_ms(20);
	result("nothing comes", mq_timedreceive(queue, text, 16, NULL, &soon));
	soon.tv_nsec = -1;
	result("no time", mq_timedreceive(queue, text, 16, NULL, &soon));
	attr.mq_flags = O_NONBLOCK;
	result("not to wait", mq_setattr(queue, &attr, NULL));
	receive("at once", queue, 16);
	attributes("now", queue);
	attr.mq_flags = O_RDWR;
	result("another flag", mq_setattr(queue, &attr, NULL));
	attr.mq_flags = 0;
	mq_setattr(queue, &attr, NULL);
	mqd_t reader = mq_open(name, O_RDONLY);
	result("only to read", mq_send(reader, "x", 1, 0));
	mq_close(reader);
	pid_t child = fork();
	if (child == 0) {
		receive("waits", queue, 16);
		_exit(0);
	}
	sleep_ms(30);
	result("send", mq_send(queue, "to who waits", 12, 2));
	reap("child", child);
	attributes("passed on", queue);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			mq_send(queue, "fill", 4, 0);
		long sent = mq_send(queue, "last", 4, 0);
		sleep_ms(30);
		result("waits for room", sent);
		_exit(0);
	}
	sleep_ms(30);
	receive("makes room", queue, 16);
	reap("child", child);
	for (int i = 0; i < 3; i++)
		receive("rest", queue, 16);
	child = fork();
	if (child == 0) {
		if (setuid(1000))
			_exit(1);
		worked("another user", mq_open(name, O_RDONLY));
		result("removes", mq_unlink(name));
		struct rlimit limit = { 1000, 1000 };
		setrlimit(RLIMIT_MSGQUEUE, &limit);
		result("too much memory", mq_open("/calls-other", O_RDWR | O_CREAT, 0600, NULL));
		attr.mq_maxmsg = 11;
		result("too many messages", mq_open("/calls-other", O_RDWR | O_CREAT, 0600, &attr));
		_exit(0);
	}
	reap("child", child);
	result("remove", mq_unlink(name));
	result("remove again", mq_unlink(name));
	result("still open", mq_send(queue, "x", 1, 0));
	result("close", mq_close(queue));
	result("closed", mq_send(queue, "x", 1, 0));
	result("no queue", mq_send(1, "x", 1, 0));
}

static volatile int notified, code, value, from;

static void
on_notice(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	notified++;
	code = info->si_code;
	value = info->si_value.sival_int;
	from = info->si_pid;
}

CASE(posix_queue_notices)
{
	char name[40];
	snprintf(name, sizeof name, "/calls-%d", (int)getpid());
	struct mq_attr attr = { .mq_maxmsg = 3, .mq_msgsize = 16 };
	mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attr);
	mq_unlink(name);
	struct sigaction action = { .sa_sigaction = on_notice, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, NULL);
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42 };
	result("ask", mq_notify(queue, &event));
	result("ask twice", mq_notify(queue, &event));
	pid_t child = fork();
	if (child == 0) {
		result("another asks", mq_notify(queue, &event));
		mq_send(queue, "one", 3, 0);
		_exit(0);
	}
	reap("child", child);
	say("told %d: code %d value %d from the child %d", notified, code, value, from == child);
	mq_send(queue, "two", 3, 0);
	say("only once: %d", notified);
	result("ask again", mq_notify(queue, &event));
	mq_send(queue, "three", 5, 0);
	say("it was not empty: %d", notified);
	for (int i = 0; i < 3; i++)
		receive("take", queue, 16);
	mq_send(queue, "four", 4, 0);
	say("it was: %d", notified);
	receive("take", queue, 16);
	mq_notify(queue, &event);
	result("no longer", mq_notify(queue, NULL));
	mq_send(queue, "five", 4, 0);
	say("then: %d", notified);
	event.sigev_notify = SIGEV_NONE;
	receive("take", queue, 16);
	result("to nobody", mq_notify(queue, &event));
	event.sigev_notify = 99;
	result("of no kind", mq_notify(queue, &event));
}
