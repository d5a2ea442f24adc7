/*
 * sysfuzz seed count: makes random system calls with random arguments, from a seed, each batch in a child that may end as
 * it likes. What would only stop the test is left out: reboot, and signals to processes that are not its own.
 */
#include "libc.h"
#include "sys/syscall.h"

#define BATCH 32 /* calls of one child */

static uint32_t state;

static uint32_t
random(uint32_t n)
{
	state ^= state << 13; /* xorshift32 */
	state ^= state >> 17;
	state ^= state << 5;
	return (state % n);
}

static const short calls[] = {
#define SYSCALL(number, name) number,
#include "sys/syscalls.def"
#undef SYSCALL
	0, 8, 200, 599, 600, 1000, -1,
};

static char memory[8192] __attribute__((aligned(4096)));

/* What an argument may be: small numbers, descriptors, pointers that lead somewhere, nowhere and to the edge, extremes. */
static long
argument(void)
{
	static const char *const paths[] = { "/etc/motd", "/bin/ls", "/no/such", "/dev/null", "/dev/random", "/", "", "/dev/dtrace/helper",
		"/usr/bin/man", "/tmp" };
	static const long extremes[] = { -1, 0x7fffffff, (long)0x80000000u, 0x1000, 0x7fffe000, 0x7ffff000, -4096, 1 };

	switch (random(9)) {
	case 0:
		return (random(16));
	case 1:
		return (random(8) * 4096);
	case 2:
		return ((long)memory + random(sizeof(memory)));
	case 3:
		return ((long)memory + sizeof(memory) - random(16));
	case 4:
		return ((long)paths[random(nitems(paths))]);
	case 5:
		return (extremes[random(nitems(extremes))]);
	case 6:
		return ((long)&state); /* where the next numbers come from */
	case 7:
		return ((long)(-1ul << random(sizeof(long) * 8))); /* a kernel's address, often */
	default:
		return (random(1u << random(31)));
	}
}

static void
one_call(void)
{
	int number = calls[random(nitems(calls))];
	long a = argument(), b = argument(), c = argument(), d = argument();

	if (number == SYS_reboot || number == SYS_fork || number == SYS_vfork)
		return;
	if (number == SYS_kill)
		a = getpid();
	for (size_t i = 0; i < sizeof(memory); i += 1 + random(256))
		memory[i] = random(256);
	syscall(number, a, b, c, d);
}

static pid_t child;

/* It waits for what will not come. */
static void
too_long(int sig __unused)
{
	kill(child, SIGKILL);
}

static void
go_on(int sig __unused)
{
}

int
main(int argc, char *argv[])
{
	struct itimerval limit = { .it_value = { .tv_usec = 20000 } };
	long count;
	struct sigaction nothing = { .sa_handler = (vaddr_t)go_on }, action = { .sa_handler = (vaddr_t)too_long };
	int status;

	if (argc < 3)
		errx(1, "usage: sysfuzz seed count");
	state = atol(argv[1]) * 2654435761u | 1;
	count = atol(argv[2]);
	sigaction(SIGALRM, &action, NULL);
	for (long done = 0; done < count; done += BATCH) {
		random(2); /* the child goes on from here in its own way: so do we */
		if ((child = fork()) < 0)
			err(1, "fork");
		if (child == 0) {
			sigaction(SIGSYS, &nothing, NULL); /* of calls that are not there */
			close(0);
			close(1);
			close(2);
			for (int i = 0; i < BATCH; i++)
				one_call();
			_exit(0);
		}
		setitimer(ITIMER_REAL, &limit, NULL);
		while (wait4(child, &status, 0, NULL) == -1 && errno == EINTR)
			continue;
	}
	printf("sysfuzz: %ld calls\n", count);
	return (0);
}
