/* sigtest: handlers, masks, an alarm, and sleeps that signals end */
#include "libc.h"

static volatile int caught[NSIG];
static volatile uint64_t fault_address;

static void
handler(int sig, struct siginfo *info, void *context __unused)
{
	caught[sig]++;
	if (sig == SIGSEGV) {
		fault_address = info->si_addr;
		mmap((void *)(info->si_addr & ~0xfffUL), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
	}
}

static void
catch(int sig, int flags)
{
	struct sigaction action = { .sa_handler = (uintptr_t)handler, .sa_flags = SA_SIGINFO | flags };

	if (sigaction(sig, &action, NULL) != 0)
		err(1, "sigaction %d", sig);
}

int
main(void)
{
	struct itimerval timer = { { 0, 0 }, { 0, 5000 } };
	sigset_t usr1 = SIGBIT(SIGUSR1), none = 0;
	int status, fds[2];
	char c = 'x';
	pid_t pid;

	catch(SIGUSR1, 0);
	kill(getpid(), SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	printf("sigtest: SIGUSR1 caught %d, then 2 blocked\n", caught[SIGUSR1]);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	printf("sigtest: SIGUSR1 caught %d after both came as one\n", caught[SIGUSR1]);

	catch(SIGSEGV, 0);
	*(volatile char *)0x30000123 = 1; /* the handler puts memory there */
	printf("sigtest: fault at %#jx mended\n", fault_address);

	catch(SIGALRM, 0);
	setitimer(ITIMER_REAL, &timer, NULL);
	if (usleep(1000000) == 0)
		errx(1, "the alarm did not end the sleep");
	printf("sigtest: alarm %d: %s\n", caught[SIGALRM], strerror(errno));

	catch(SIGALRM, SA_RESTART);
	pipe(fds);
	setitimer(ITIMER_REAL, &timer, NULL);
	if ((pid = fork()) == 0) {
		usleep(10000);
		write(fds[1], &c, 1);
		_exit(0);
	}
	if (read(fds[0], &c, 1) != 1)
		err(1, "read was not started again");
	wait(&status);
	printf("sigtest: alarm %d: read went on\n", caught[SIGALRM]);

	if ((pid = fork()) == 0)
		for (;;)
			sigsuspend(&none);
	kill(pid, SIGSTOP);
	kill(pid, SIGCONT);
	kill(pid, SIGTERM);
	wait4(pid, &status, 0, NULL);
	printf("sigtest: child died of signal %d\n", WTERMSIG(status));
	return (0);
}
