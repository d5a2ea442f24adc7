/* init: the first program. Runs /etc/rc, takes over orphans, and turns the machine off with the script's exit value. */
#include "libc.h"

int
main(void)
{
	char *const argv[] = { "sh", "/etc/rc", NULL };
	int status, result = 0;
	pid_t rc, pid;

	open("/dev/console", O_RDWR);
	dup(0);
	dup(0);
	if ((rc = fork()) == 0) {
		execvp("/bin/sh", argv);
		err(127, "/bin/sh");
	}
	while ((pid = wait(&status)) > 0)
		if (pid == rc)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	fflush();
	reboot(RB_POWEROFF | result);
	return (1);
}
