/* SCHED_DEADLINE: parameters, who may have them, and who comes first. */
#define _GNU_SOURCE
#include "calls.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 6
#define MS 1000000ull

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void
set(const char *what, uint64_t runtime, uint64_t deadline, uint64_t period, uint64_t flags)
{
	struct attributes one = { sizeof one, DEADLINE, flags, 0, 0, runtime, deadline, period };
	result(what, syscall(SYS_sched_setattr, 0, &one, 0));
}

static void
show(const char *what)
{
	struct attributes one;
	memset(&one, 0xff, sizeof one);
	if (syscall(SYS_sched_getattr, 0, &one, sizeof one, 0))
		say("%s: failed", what);
	else
		/* With other policies Linux tells the length of a turn, which follows from the number of CPUs. */
		say("%s: policy %u flags %llu nice %d priority %u: %llu %llu %llu", what, one.policy,
		    (unsigned long long)one.flags, one.nice, one.priority,
		    (unsigned long long)(one.policy == DEADLINE ? one.runtime : 0),
		    (unsigned long long)one.deadline, (unsigned long long)one.period);
}

CASE(deadlines)
{
	struct sched_param none = { 0 };
	result("without parameters", sched_setscheduler(0, DEADLINE, &none));
	set("no deadline", 1 * MS, 0, 0, 0);
	set("no time to run", 0, 10 * MS, 0, 0);
	set("less than can be measured", 1000, 10 * MS, 0, 0);
	set("more than the deadline", 11 * MS, 10 * MS, 20 * MS, 0);
	set("a deadline after the period", 1 * MS, 30 * MS, 20 * MS, 0);
	set("a period that is too short", 2000, 50000, 50000, 0);
	set("a period that is too long", 1 * MS, 5000 * MS, 5000 * MS, 0);
	set("no such flag", 1 * MS, 10 * MS, 0, 0x1000);
	show("as before");
	set("one millisecond in ten", 1 * MS, 10 * MS, 0, 0);
	show("now");
	result("policy", sched_getscheduler(0));
	result("sched_getparam", sched_getparam(0, &none));
	result("priority", none.sched_priority);
	pid_t child = fork();
	result("fork", child < 0 ? -1 : 0);
	if (!child)
		_exit(0);
	set("with a flag", 1 * MS, 5 * MS, 10 * MS, 1);
	show("now");
	child = fork();
	if (!child) {
		show("the child");
		_exit(0);
	}
	reap("child", child);
	result("sched_yield", sched_yield());
	result("back", sched_setscheduler(0, SCHED_OTHER, &none));
	show("back");
	result("the least", sched_get_priority_min(DEADLINE));
	result("the most", sched_get_priority_max(DEADLINE));
	if (setuid(65534))
		abort();
	set("without privilege", 1 * MS, 10 * MS, 0, 0);
}
