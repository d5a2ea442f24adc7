/* Calls about who a process is and how it is treated. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)
#define IO(class, level) ((class) << 13 | (level))

enum { PROCESS = 1, GROUP, USER, REAL_TIME = 1, BEST, IDLE };

CASE(io_priorities)
{
	setpgid(0, 0);
	result("at the start", CALL(ioprio_get, PROCESS, 0));
	result("of the group", CALL(ioprio_get, GROUP, 0));
	result("which", CALL(ioprio_get, 0, 0));
	result("which 4", CALL(ioprio_get, 4, 0));
	result("no process", CALL(ioprio_get, PROCESS, 4999999));
	result("no group", CALL(ioprio_get, GROUP, 4999999));
	result("no user", CALL(ioprio_get, USER, 54321));
	result("set", CALL(ioprio_set, PROCESS, 0, IO(BEST, 7)));
	result("get", CALL(ioprio_get, PROCESS, 0));
	result("of itself", CALL(ioprio_get, PROCESS, getpid()));
	result("set by which", CALL(ioprio_set, 9, 0, IO(BEST, 7)));
	result("none", CALL(ioprio_set, PROCESS, 0, IO(0, 0)));
	result("none with a level", CALL(ioprio_set, PROCESS, 0, IO(0, 1)));
	result("class 4", CALL(ioprio_set, PROCESS, 0, IO(4, 0)));
	result("class 7", CALL(ioprio_set, PROCESS, 0, IO(7, 7)));
	result("idle", CALL(ioprio_set, PROCESS, 0, IO(IDLE, 5)));
	result("get", CALL(ioprio_get, PROCESS, 0));
	pid_t child = fork();
	if (!child) {
		result("a child", CALL(ioprio_get, PROCESS, 0));
		result("real time", CALL(ioprio_set, PROCESS, 0, IO(REAL_TIME, 0)));
		result("of both", CALL(ioprio_get, GROUP, 0));
		result("the group", CALL(ioprio_set, GROUP, 0, IO(BEST, 3)));
		result("parent", CALL(ioprio_get, PROCESS, getppid()));
		if (setresuid(1000, 1000, 1000))
			abort();
		result("real time, a user", CALL(ioprio_set, PROCESS, 0, IO(REAL_TIME, 0)));
		result("best effort, a user", CALL(ioprio_set, PROCESS, 0, IO(BEST, 0)));
		result("another's", CALL(ioprio_set, PROCESS, getppid(), IO(BEST, 0)));
		result("reading another's", CALL(ioprio_get, PROCESS, getppid()));
		result("of the user", CALL(ioprio_get, USER, 0));
		_exit(0);
	}
	reap("child", child);
	CALL(ioprio_set, PROCESS, 0, 0);
	setpriority(PRIO_PROCESS, 0, 10);
	result("by nice value", CALL(ioprio_get, GROUP, 0));
	result("its own", CALL(ioprio_get, PROCESS, 0));
}

static void
system_name(const char *what)
{
	struct utsname name;
	uname(&name);
	const char *machine = name.machine;
	/* What differs: every ISA has another name, and not all have one for 32 bits. */
#if defined __x86_64__
	const char *normal = "x86_64", *narrow = "i686";
#elif defined __i386__
	const char *normal = "i686", *narrow = "";
#elif defined __aarch64__
	const char *normal = "aarch64", *narrow = "";
#else
	const char *normal = "riscv64", *narrow = "riscv";
#endif
	say("%s: %s, release %.4s", what, !strcmp(machine, narrow) ? "narrow" : strcmp(machine, normal) ? machine : "normal",
	    name.release[0] == '2' ? name.release : "now");
}

CASE(personalities)
{
	enum { ASK = -1, UNAME26 = 0x20000, NO_RANDOM = 0x40000, READ_EXECUTE = 0x400000, LINUX32 = 8 };
	result("ask", CALL(personality, ASK));
	result("set", CALL(personality, NO_RANDOM));
	result("ask", CALL(personality, ASK));
	system_name("normal");
	result("old", CALL(personality, UNAME26));
	system_name("old");
	pid_t child = fork();
	if (!child) {
		result("a child", CALL(personality, ASK));
		_exit(0);
	}
	reap("child", child);
	CALL(personality, 0);
#if defined __x86_64__ || defined __riscv
	result("32 bits", CALL(personality, LINUX32));
	system_name("32 bits");
	CALL(personality, 0);
#else
	say("32 bits: 0");
	say("32 bits: narrow, release now");
#endif
	char text[16] = "";
	CALL(personality, READ_EXECUTE | 0x1000000);
	int fd = open("/proc/self/personality", O_RDONLY);
	if (read(fd, text, 8) != 8)
		say("nothing to read");
	say("%s", text);
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		char rights[5];
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && start <= (unsigned long)at && (unsigned long)at < end)
			say("%s", rights);
	}
}

CASE(barriers)
{
	/* Without those for rseq. */
	long known = CALL(membarrier, 0, 0, 0);
	say("%lx", known & ~0x180L);
	result("a flag", CALL(membarrier, 0, 1, 0));
	result("registrations", CALL(membarrier, 0x200, 0, 0));
	result("global", CALL(membarrier, 1, 0, 0));
	result("global at once", CALL(membarrier, 2, 0, 0));
	result("not registered", CALL(membarrier, 8, 0, 0));
	result("nor for cores", CALL(membarrier, 0x20, 0, 0));
	result("a command", CALL(membarrier, 0x400, 0, 0));
	result("two commands", CALL(membarrier, 3, 0, 0));
	result("negative", CALL(membarrier, -1, 0, 0));
	result("register for cores", CALL(membarrier, 0x40, 0, 0));
	say("%lx", CALL(membarrier, 0x200, 0, 0));
	result("cores", CALL(membarrier, 0x20, 0, 0));
	result("not registered", CALL(membarrier, 8, 0, 0));
	result("register", CALL(membarrier, 0x10, 0, 0));
	result("private", CALL(membarrier, 8, 0, 0));
	result("private, a flag", CALL(membarrier, 8, 1, 0));
	result("register globally", CALL(membarrier, 4, 0, 0));
	say("%lx", CALL(membarrier, 0x200, 0, 0));
	pid_t child = fork();
	if (!child) {
		say("a child: %lx", CALL(membarrier, 0x200, 0, 0));
		result("private", CALL(membarrier, 8, 0, 0));
		_exit(0);
	}
	reap("child", child);
}

CASE(groups)
{
	result("negative group", setpgid(0, -1));
	result("negative process", setpgid(-5, 0));
	result("no process", setpgid(4999999, 0));
	result("init's", setpgid(1, 0));
	result("negative, of", getpgid(-1));
	result("negative session", getsid(-1));
	pid_t child = fork();
	if (!child) {
		result("a group that is not there", setpgid(0, 4999999));
		result("lead", setpgid(0, 0));
		result("no session", setsid());
		pid_t inner = fork();
		if (!inner) {
			pid_t own = getpid();
			result("session", setsid() == own ? 0 : -1);
			result("leader", setpgid(0, 0));
			result("leader again", setsid());
			result("parent's group", setpgid(0, getppid()));
			pid_t last = fork();
			if (!last) {
				sleep_ms(5000);
				_exit(0);
			}
			result("another's", setpgid(last, last));
			result("and back", setpgid(last, own));
			result("a foreign one", setpgid(last, getppid()));
			kill(last, SIGKILL);
			reap("last", last);
			_exit(0);
		}
		sleep_ms(20);
		result("child's session", setpgid(inner, 0));
		reap("inner", inner);
		/* A group that outlives its leader's membership. */
		inner = fork();
		if (!inner) {
			pid_t own = getpid();
			setpgid(0, 0);
			pid_t last = fork();
			if (!last) {
				sleep_ms(5000);
				_exit(0);
			}
			result("leave", setpgid(0, getpgid(getppid())));
			result("no session", setsid());
			kill(last, SIGKILL);
			reap("last", last);
			result("a session", setsid() == own ? 0 : -1);
			_exit(0);
		}
		reap("inner", inner);
		_exit(0);
	}
	reap("child", child);
}

CASE(process_1)
{
	result("there", kill(1, 0));
	result("a signal", kill(1, 1000));
	result("nobody", kill(4999999, 1000));
	result("policy", sched_getscheduler(1));
	struct sched_param parameters;
	result("parameters", sched_getparam(1, &parameters));
	result("nice value", getpriority(PRIO_PROCESS, 1));
	result("group", getpgid(1) >= 0 ? 0 : -1);
	result("session", getsid(1) >= 0 ? 0 : -1);
	result("input and output", CALL(ioprio_get, PROCESS, 1));
	struct rlimit limit;
	result("limit", prlimit(1, RLIMIT_NOFILE, NULL, &limit));
	cpu_set_t cpus;
	result("cpus", sched_getaffinity(1, sizeof cpus, &cpus));
	worked("file", CALL(pidfd_open, 1, 0));
	result("thread", CALL(tgkill, 1, 1, 0));
	result("another's thread", CALL(tgkill, getpid(), 1, 0));
	result("no thread", CALL(tgkill, 1, 0, 0));
	result("no number", CALL(tkill, 0, 0));
	result("proc", access("/proc/1/stat", R_OK));
	pid_t child = fork();
	if (!child) {
		if (setresuid(1000, 1000, 1000))
			abort();
		result("a user", kill(1, 0));
		result("a user's signal", kill(1, SIGKILL));
		result("a user's limit", prlimit(1, RLIMIT_NOFILE, NULL, &limit));
		_exit(0);
	}
	reap("child", child);
	struct { int number, error, code, filler[29]; } info = { SIGUSR1, 0, 0, { 0 } };
	result("as the kernel", CALL(rt_sigqueueinfo, 1, SIGUSR1, &info));
	info.code = -6;
	result("as tkill", CALL(rt_sigqueueinfo, getppid(), SIGUSR1, &info));
	result("nothing to restart", CALL(restart_syscall));
}
