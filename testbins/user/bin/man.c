/* man [page]: finds the page, and has cat, wc and head show it: a little work made of several programs, to be traced */
#include "libc.h"

static int
run(char *const argv[], int in, int out)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		if (in != 0)
			dup2(in, 0);
		if (out != 1)
			dup2(out, 1);
		for (int fd = 3; fd < 8; fd++)
			close(fd);
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	return (pid);
}

int
main(int argc, char *argv[])
{
	char page[128], *cat[] = { "cat", page, NULL }, *head[] = { "head", "-n", "20", NULL }, *wc[] = { "wc", "-l", page, NULL };
	int fds[2], status;

	snprintf(page, sizeof(page), "/usr/share/man/%s", argc > 1 ? argv[1] : "man");
	if (access(page, R_OK) != 0)
		errx(1, "No manual entry for %s", argc > 1 ? argv[1] : "man");
	if (pipe(fds) != 0)
		err(1, "pipe");
	run(cat, 0, fds[1]);
	run(head, fds[0], 1);
	close(fds[0]);
	close(fds[1]);
	wait(&status);
	wait(&status);
	run(wc, 0, 1);
	wait(&status);
	return (WEXITSTATUS(status));
}
