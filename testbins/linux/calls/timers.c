/* Timers of every kind, and signals that are read from a file. */
#define _GNU_SOURCE
#include "calls.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count, code, value;

static void
on_signal(int number)
{
	(void)number;
	count++;
}

static void
on_info(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	count++;
	code = info->si_code;
	value = info->si_value.sival_int;
}

static void
wait_for(int wanted)
{
	while (count < wanted)
		pause();
}

CASE(interval_timers)
{
	struct itimerval set = { { 0, 2000 }, { 0, 3000 } }, old = { 0 };
	on(SIGALRM, on_signal);
	result("setitimer", setitimer(ITIMER_REAL, &set, &old));
	say("nothing before: %d %d", (int)old.it_value.tv_sec, (int)old.it_value.tv_usec);
	wait_for(3);
	result("getitimer", getitimer(ITIMER_REAL, &old));
	say("interval %d, left in time: %d", (int)old.it_interval.tv_usec, old.it_value.tv_usec <= 2000);
	memset(&set, 0, sizeof set);
	result("stop", setitimer(ITIMER_REAL, &set, NULL));
	result("a timer that does not exist", setitimer(7, &set, NULL));
	set.it_value.tv_usec = 1000000;
	result("too many microseconds", setitimer(ITIMER_REAL, &set, NULL));
	result("alarm", alarm(100));
	result("alarm", alarm(0));
	on(SIGVTALRM, on_signal);
	on(SIGPROF, on_signal);
	count = 0;
	set.it_value.tv_usec = 1000;
	result("of the process", setitimer(ITIMER_VIRTUAL, &set, NULL));
	while (!count)
		;
	result("and its kernel", setitimer(ITIMER_PROF, &set, NULL));
	while (count < 2)
		;
	say("came");
}

CASE(posix_timers)
{
	timer_t timer, other;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 4711 };
	struct itimerspec set = { { 0, 0 }, { 0, 2000000 } }, old;
	struct sigaction action = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO };
	sigaction(SIGRTMIN + 1, &action, NULL);
	result("timer_create", timer_create(CLOCK_MONOTONIC, &event, &timer));
	result("a clock that does not exist", timer_create(99, &event, &other));
	event.sigev_signo = 99;
	result("a signal that does not exist", timer_create(CLOCK_MONOTONIC, &event, &other));
	result("timer_gettime", timer_gettime(timer, &old));
	say("left %d %d", (int)old.it_value.tv_sec, (int)old.it_value.tv_nsec);
	result("timer_settime", timer_settime(timer, 0, &set, NULL));
	wait_for(1);
	say("code %d, value %d", code, value);
	result("overrun", timer_getoverrun(timer));
	set.it_value.tv_nsec = 1;
	set.it_value.tv_sec = 1;
	result("a time that has passed", timer_settime(timer, TIMER_ABSTIME, &set, NULL));
	while (count < 2)
		;
	say("came");
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	set = (struct itimerspec){ { 0, 1000000 }, { 0, 1000000 } };
	result("again and again", timer_settime(timer, 0, &set, NULL));
	sleep_ms(20);
	siginfo_t info;
	result("sigwaitinfo", sigwaitinfo(&mask, &info) == SIGRTMIN + 1);
	say("overruns: %d", timer_getoverrun(timer) >= 10);
	set.it_value.tv_nsec = 1000000000;
	result("too many nanoseconds", timer_settime(timer, 0, &set, NULL));
	result("timer_delete", timer_delete(timer));
	result("again", timer_delete(timer));
	event = (struct sigevent){ .sigev_notify = SIGEV_NONE };
	result("without a signal", timer_create(CLOCK_REALTIME, &event, &timer));
	set = (struct itimerspec){ { 0, 0 }, { 1000, 0 } };
	result("timer_settime", timer_settime(timer, 0, &set, NULL));
	result("timer_gettime", timer_gettime(timer, &old));
	say("left: %d", old.it_value.tv_sec >= 998 && old.it_value.tv_sec <= 1000);
	count = 0;
	on(SIGALRM, on_signal);
	result("CPU time", timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &other));
	set = (struct itimerspec){ { 0, 0 }, { 0, 3000000 } };
	result("timer_settime", timer_settime(other, 0, &set, NULL));
	while (!count)
		;
	say("came");
}

CASE(timerfd)
{
	uint64_t times = 0;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	worked("timerfd_create", timer);
	result("a clock that does not exist", timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
	result("flags", timerfd_create(CLOCK_MONOTONIC, 0x10));
	struct itimerspec set = { { 0, 0 }, { 0, 2000000 } }, old;
	result("timerfd_settime", timerfd_settime(timer, 0, &set, &old));
	result("flags", timerfd_settime(timer, 0x100, &set, &old));
	result("not a timer", timerfd_settime(1, 0, &set, &old));
	result("too early", read(timer, &times, 8));
	events("too early", polled(timer));
	int epoll = epoll_create1(0);
	struct epoll_event event = { EPOLLIN, { 0 } };
	result("add", epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event));
	result("epoll_wait", epoll_wait(epoll, &event, 1, -1));
	events("expired", polled(timer));
	result("too short", read(timer, &times, 4));
	result("read", read(timer, &times, 8));
	result("times", (long)times);
	result("read", read(timer, &times, 8));
	set = (struct itimerspec){ { 0, 1000000 }, { 0, 1 } };
	result("again and again", timerfd_settime(timer, 0, &set, NULL));
	sleep_ms(30);
	result("read", read(timer, &times, 8));
	say("many times: %d", times >= 15 && times < 1000);
	result("timerfd_gettime", timerfd_gettime(timer, &old));
	result("interval", old.it_interval.tv_nsec);
	set = (struct itimerspec){ { 0, 0 }, { 0, 0 } };
	result("stop", timerfd_settime(timer, 0, &set, NULL));
	sleep_ms(3);
	result("read", read(timer, &times, 8));
	int wall = timerfd_create(CLOCK_REALTIME, 0);
	clock_gettime(CLOCK_REALTIME, &set.it_value);
	set.it_value.tv_nsec += 3000000;
	if (set.it_value.tv_nsec >= 1000000000) {
		set.it_value.tv_nsec -= 1000000000;
		set.it_value.tv_sec++;
	}
	result("at a time", timerfd_settime(wall, TFD_TIMER_ABSTIME, &set, NULL));
	result("read", read(wall, &times, 8));
	result("times", (long)times);
}

CASE(signalfd)
{
	struct signalfd_siginfo got[4];
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigaddset(&mask, SIGCHLD);
	sigaddset(&mask, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	int file = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
	worked("signalfd", file);
	result("not one", signalfd(0, &mask, 0));
	result("read", read(file, got, sizeof got));
	events("nothing", polled(file));
	kill(getpid(), SIGUSR1);
	events("a signal", polled(file));
	result("too short", read(file, got, 100));
	union sigval sent = { .sival_int = 42 };
	sigqueue(getpid(), SIGRTMIN, sent);
	sigqueue(getpid(), SIGRTMIN, sent);
	long size = read(file, got, sizeof got);
	result("read", size);
	for (int i = 0; i < size / (long)sizeof *got; i++)
		say("signal %d, code %d, own process %d, value %d", (int)got[i].ssi_signo, got[i].ssi_code,
		    got[i].ssi_pid == (unsigned)getpid(), i ? got[i].ssi_int : 0);
	pid_t pid = fork();
	if (!pid)
		_exit(7);
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	result("other signals", signalfd(file, &child, 0) == file);
	int epoll = epoll_create1(0);
	struct epoll_event event = { EPOLLIN, { 0 } };
	epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event);
	result("epoll_wait", epoll_wait(epoll, &event, 1, -1));
	result("read", read(file, got, sizeof got));
	say("signal %d, code %d, the child %d, status %d", (int)got[0].ssi_signo, got[0].ssi_code,
	    got[0].ssi_pid == (unsigned)pid, got[0].ssi_status);
	reap("child", pid);
}

CASE(shortest_timers)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct itimerval often = { { 0, 1 }, { 0, 1 } };
	struct itimerspec oftener = { { 0, 1 }, { 0, 1 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	sigset_t set;
	timer_t timer;
	uint64_t times = 0;
	volatile unsigned work = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGPROF);
	sigprocmask(SIG_BLOCK, &set, NULL);
	result("setitimer", setitimer(ITIMER_REAL, &often, NULL));
	result("of CPU time", setitimer(ITIMER_PROF, &often, NULL));
	result("timer_create", timer_create(CLOCK_MONOTONIC, &event, &timer));
	result("timer_settime", timer_settime(timer, 0, &oftener, NULL));
	int file = timerfd_create(CLOCK_MONOTONIC, 0);
	result("timerfd_settime", timerfd_settime(file, 0, &oftener, NULL));
	for (int i = 0; i < 20000000; i++)
		work += (unsigned)i;
	result("read", read(file, &times, sizeof times));
	say("many times: %d", times > 1000);
	siginfo_t info;
	struct timespec none = { 0, 0 };
	for (int i = 0; i < 3; i++)
		say("a signal: %d", sigtimedwait(&set, &info, &none) > 0);
	sigaction(SIGUSR1, &ignore, NULL);
	for (int i = 0; i < 1000000; i++)
		work += (unsigned)i;
	result("timer_delete", timer_delete(timer));
}
