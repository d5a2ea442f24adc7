/* forktest [n]: n children (10), each with memory of its own, all waited for */
#include "libc.h"

static int shared = 1;

int
main(int argc, char *argv[])
{
	int n = argc > 1 ? atol(argv[1]) : 10, status, sum = 0;
	pid_t pid;

	for (int i = 0; i < n; i++) {
		if ((pid = fork()) < 0)
			err(1, "fork");
		if (pid == 0) {
			shared += i; /* a copy: the parent's stays 1 */
			_exit(shared);
		}
	}
	for (int i = 0; i < n; i++) {
		if (wait(&status) < 0)
			err(1, "wait");
		if (!WIFEXITED(status))
			errx(1, "a child died of signal %d", WTERMSIG(status));
		sum += WEXITSTATUS(status);
	}
	if (wait(&status) != -1 || errno != ECHILD)
		errx(1, "a child too many");
	if ((pid = vfork()) == 0)
		_exit(7);
	if (pid < 0 || wait4(pid, &status, 0, NULL) != pid || WEXITSTATUS(status) != 7)
		errx(1, "vfork");
	printf("forktest: %d children, exit values add up to %d, shared is %d\n", n, sum, shared);
	return (0);
}
