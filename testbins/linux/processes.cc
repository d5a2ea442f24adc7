/* Processes: made in three ways, their statuses, and the pipes between them. */
#include "zoo.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace {

volatile sig_atomic_t children;

void
describe(const char *what, int status)
{
	if (WIFEXITED(status))
		say("%s: exit %d", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		say("%s: signal %d", what, WTERMSIG(status));
	else
		say("%s: neither ended nor killed", what);
}

int
await(pid_t pid)
{
	int status;
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	return status;
}

} // namespace

PROBEABLE int
in_child(int number)
{
	return 20 + number;
}

PROBEABLE void
on_child(int)
{
	children = children + 1;
}

PROBEABLE void
forks()
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0)
			_exit(in_child(i));
		describe("fork", await(pid));
	}
	pid_t pid = fork();
	if (pid == 0) {
		raise(SIGKILL);
		_exit(0);
	}
	describe("fork, killed", await(pid));
	pid = fork();
	if (pid == 0) {
		pid_t grandchild = fork();
		if (grandchild == 0)
			_exit(5);
		_exit(WEXITSTATUS(await(grandchild)) + 1);
	}
	describe("fork, twice", await(pid));
	say("no child left: %d", waitpid(-1, nullptr, 0) == -1);
}

PROBEABLE void
executes()
{
	const char *const vforked[] = {self(), "child", "vfork", "31", nullptr};
	pid_t pid = vfork();
	if (pid == 0) {
		execve(self(), const_cast<char **>(vforked), environ);
		_exit(127);
	}
	describe("vfork, execve", await(pid));
	pid = vfork();
	if (pid == 0) {
		execve("/nonexistent/program", const_cast<char **>(vforked), environ);
		_exit(126);
	}
	describe("vfork, no such program", await(pid));
	const char *const spawned[] = {self(), "child", "posix_spawn", "32", nullptr};
	if (posix_spawn(&pid, self(), nullptr, nullptr, const_cast<char **>(spawned), environ))
		fail("posix_spawn");
	describe("posix_spawn", await(pid));
}

PROBEABLE void
pipes()
{
	int down[2], up[2];
	if (pipe(down) || pipe(up))
		fail("pipe");
	pid_t pid = fork();
	if (pid == 0) {
		dup2(down[0], STDIN_FILENO);
		dup2(up[1], STDOUT_FILENO);
		for (int fd : {down[0], down[1], up[0], up[1]})
			close(fd);
		char c;
		while (read(STDIN_FILENO, &c, 1) == 1) {
			c = c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
			if (write(STDOUT_FILENO, &c, 1) != 1)
				_exit(1);
		}
		_exit(33);
	}
	close(down[0]);
	close(up[1]);
	const char text[] = "through two pipes";
	if (write(down[1], text, strlen(text)) != static_cast<ssize_t>(strlen(text)))
		fail("write");
	close(down[1]);
	char answer[64] = {};
	size_t length = 0;
	for (ssize_t n; (n = read(up[0], answer + length, sizeof answer - 1 - length)) > 0;)
		length += n;
	close(up[0]);
	describe(answer, await(pid));
	int broken[2];
	if (pipe(broken))
		fail("pipe");
	close(broken[0]);
	pid = fork();
	if (pid == 0)
		_exit(write(broken[1], "x", 1) == 1);
	describe("no reader", await(pid));
	close(broken[1]);
}

PROBEABLE void
child_signals()
{
	sigset_t blocked, before;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	signal(SIGCHLD, on_child);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	while (!children)
		sigsuspend(&before);
	describe("SIGCHLD", await(pid));
	say("handled %d", static_cast<int>(children));
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, nullptr);
}

int
case_processes(int, char **)
{
	forks();
	executes();
	pipes();
	child_signals();
	return 17;
}

int
case_child(int argc, char **argv)
{
	say("child of %s, %d arguments", argc > 1 ? argv[1] : "nobody", argc);
	return argc > 2 ? atoi(argv[2]) : 0;
}
