/* Threads that the C library makes for events: of message queues and of timers. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sem_t done, go;
static pthread_t first;

static void
event(union sigval value)
{
	sem_wait(&go);
	say("a thread: value %d, another than the first: %d", value.sival_int, !pthread_equal(pthread_self(), first));
	sem_post(&done);
}

/* Lets the next thread print, and waits until it has. */
static void
wait_for_event(void)
{
	sem_post(&go);
	sem_wait(&done);
}

static long
notify(mqd_t queue, const struct sigevent *how)
{
	return syscall(SYS_mq_notify, queue, how);
}

CASE(queue_threads)
{
	first = pthread_self();
	sem_init(&done, 0, 0);
	sem_init(&go, 0, 0);
	struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	mq_unlink("/told");
	mqd_t queue = mq_open("/told", O_CREAT | O_RDWR | O_EXCL, 0600, &attributes);
	worked("mq_open", queue);
	mq_unlink("/told");
	struct sigevent how = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 42 };
	how.sigev_notify_function = event;
	result("mq_notify", mq_notify(queue, &how));
	result("busy", mq_notify(queue, &how));
	result("mq_send", mq_send(queue, "one", 3, 0));
	wait_for_event();
	result("again, though a message waits", mq_notify(queue, &how));
	result("mq_send", mq_send(queue, "two", 3, 0));
	char data[16];
	result("mq_receive", mq_receive(queue, data, sizeof data, NULL));
	result("mq_receive", mq_receive(queue, data, sizeof data, NULL));
	result("mq_send", mq_send(queue, "three", 5, 0));
	wait_for_event();
	result("no longer", mq_notify(queue, NULL));
	how.sigev_value.sival_int = 43;
	result("mq_receive", mq_receive(queue, data, sizeof data, NULL));
	result("once more", mq_notify(queue, &how));
	result("taken back", mq_notify(queue, NULL));
	result("mq_send", mq_send(queue, "four", 4, 0));
	result("mq_close", mq_close(queue));
	/* What the C library does: the kernel sends 32 bytes to a socket of the family netlink. */
	int pipes[2];
	if (pipe(pipes))
		abort();
	queue = mq_open("/told", O_CREAT | O_RDWR | O_EXCL, 0600, &attributes);
	mq_unlink("/told");
	char cookie[32] = "biscuit";
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
	worked("netlink", netlink);
	how = (struct sigevent){ .sigev_notify = SIGEV_THREAD, .sigev_signo = netlink, .sigev_value.sival_ptr = cookie };
	struct sigevent bad = how;
	bad.sigev_signo = pipes[0];
	result("no socket", notify(queue, &bad));
	bad.sigev_signo = 999;
	result("no file", notify(queue, &bad));
	bad.sigev_value.sival_ptr = nowhere;
	result("no cookie", notify(queue, &bad));
	bad = how;
	bad.sigev_notify = 9;
	result("no kind", notify(queue, &bad));
	result("cookie", notify(queue, &how));
	result("busy", notify(queue, &how));
	result("mq_send", mq_send(queue, "five", 4, 0));
	char got[64];
	long size = recv(netlink, got, sizeof got, MSG_DONTWAIT);
	result("received", size);
	bytes("it is", got, size);
	result("empty", recv(netlink, got, sizeof got, MSG_DONTWAIT));
	result("mq_receive", mq_receive(queue, data, sizeof data, NULL));
	result("cookie", notify(queue, &how));
	result("removed", notify(queue, NULL));
	size = recv(netlink, got, sizeof got, MSG_DONTWAIT);
	bytes("it is", got, size);
	result("cookie", notify(queue, &how));
	result("mq_close", mq_close(queue));
	size = recv(netlink, got, sizeof got, MSG_DONTWAIT);
	bytes("it is", got, size);
}

CASE(timer_threads)
{
	first = pthread_self();
	sem_init(&done, 0, 0);
	sem_init(&go, 0, 0);
	struct sigevent how = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7 };
	how.sigev_notify_function = event;
	timer_t timer;
	result("timer_create", timer_create(CLOCK_MONOTONIC, &how, &timer));
	struct itimerspec time = { { 0, 2000000 }, { 0, 1000000 } };
	result("timer_settime", timer_settime(timer, 0, &time, NULL));
	for (int i = 0; i < 3; i++)
		wait_for_event();
	time = (struct itimerspec){ 0 };
	result("stopped", timer_settime(timer, 0, &time, NULL));
	result("timer_delete", timer_delete(timer));
}
