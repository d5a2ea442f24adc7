/* Extended attributes, name spaces, shared descriptors, and calls that take flags about files. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static char directory[32];

static void
enter(void)
{
	mkdir("/dev/shm", 01777);
	strcpy(directory, "/dev/shm/argumentsXXXXXX");
	if (!mkdtemp(directory) || chdir(directory) || chmod(directory, 0755))
		abort();
}

static void
leave(void)
{
	if (chdir("/"))
		abort();
	static const char *const names[] = { "file", "moved", "other", "link", "fifo", "folder", "locked" };
	char path[64];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		if (unlink(path))
			rmdir(path);
	}
	rmdir(directory);
}

static void
make(const char *name, mode_t mode)
{
	close(open(name, O_CREAT | O_RDWR, 0666));
	chmod(name, mode);
}

CASE(attributes)
{
	char data[300], name[300] = "user.";
	memset(name + 5, 'x', 260);
	enter();
	make("file", 0644);
	mkdir("folder", 0755);
	if (symlink("file", "link") || mkfifo("fifo", 0644))
		abort();
	result("no file", setxattr("none", "user.a", "1", 1, 0));
	result("nothing yet", getxattr("file", "user.a", data, sizeof data));
	result("empty list", listxattr("file", data, sizeof data));
	result("set", setxattr("file", "user.b", "hello", 5, 0));
	bytes("get", data, getxattr("file", "user.b", data, sizeof data));
	result("size", getxattr("file", "user.b", data, 0));
	result("too small", getxattr("file", "user.b", data, 4));
	result("another", setxattr("file", "user.a", "", 0, 0));
	bytes("empty", data, getxattr("file", "user.a", data, sizeof data));
	bytes("list", data, listxattr("file", data, sizeof data));
	result("list's size", listxattr("file", data, 0));
	result("list too small", listxattr("file", data, 13));
	result("create", setxattr("file", "user.b", "x", 1, XATTR_CREATE));
	result("replace nothing", setxattr("file", "user.c", "x", 1, XATTR_REPLACE));
	result("replace", setxattr("file", "user.b", "x", 1, XATTR_REPLACE));
	result("a flag", setxattr("file", "user.b", "x", 1, 4));
	result("both", setxattr("file", "user.b", "x", 1, 3));
	result("both, new", setxattr("file", "user.d", "x", 1, 3));
	result("no name", setxattr("file", "", "x", 1, 0));
	name[256] = 0;
	result("a long name", setxattr("file", name, "x", 1, 0));
	result("a long name to get", getxattr("file", name, data, 1));
	result("a long name to remove", removexattr("file", name));
	name[255] = 0;
	result("a name", setxattr("file", name, "x", 1, 0));
	result("remove it", removexattr("file", name));
	result("remove nothing", removexattr("file", name));
	result("a bad name", setxattr("file", nowhere, "x", 1, 0));
	result("a bad value", setxattr("file", "user.a", nowhere, 1, 0));
	result("a bad buffer", getxattr("file", "user.b", nowhere, 1));
	static char large[65537];
	result("a large value", setxattr("file", "user.l", large, 65536, 0));
	result("its size", getxattr("file", "user.l", NULL, 0));
	result("larger", setxattr("file", "user.l", large, 65537, 0));
	result("remove", removexattr("file", "user.l"));
	result("only a prefix", setxattr("file", "user.", "x", 1, 0));
	result("without a prefix", setxattr("file", "user", "x", 1, 0));
	result("unknown", setxattr("file", "other.a", "x", 1, 0));
	result("unknown to get", getxattr("file", "other.a", data, 1));
	result("unknown to remove", removexattr("file", "other.a"));
	result("system", setxattr("file", "system.a", "x", 1, 0));
	result("a folder", setxattr("folder", "user.a", "x", 1, 0));
	result("a fifo", setxattr("fifo", "user.a", "x", 1, 0));
	result("a fifo to get", getxattr("fifo", "user.a", data, 1));
	result("a fifo to remove", removexattr("fifo", "user.a"));
	result("a fifo, trusted", setxattr("fifo", "trusted.a", "x", 1, 0));
	result("by link", setxattr("link", "user.z", "x", 1, 0));
	result("the link", lsetxattr("link", "user.z", "x", 1, 0));
	result("the link to get", lgetxattr("link", "user.z", data, 1));
	result("the link, trusted", lsetxattr("link", "trusted.l", "x", 1, 0));
	bytes("the link's list", data, llistxattr("link", data, sizeof data));
	result("the link to remove", lremovexattr("link", "trusted.l"));
	bytes("the file's list", data, listxattr("link", data, sizeof data));
	result("trusted", setxattr("file", "trusted.a", "t", 1, 0));
	result("security", setxattr("file", "security.a", "s", 1, 0));
	bytes("of all kinds", data, listxattr("file", data, sizeof data));
	int fd = open("file", O_RDONLY);
	result("open", fsetxattr(fd, "user.f", "f", 1, 0));
	bytes("to get", data, fgetxattr(fd, "user.f", data, sizeof data));
	result("rename", rename("file", "moved"));
	bytes("list", data, flistxattr(fd, data, sizeof data));
	result("remove", fremovexattr(fd, "user.f"));
	result("gone", fgetxattr(fd, "user.f", data, sizeof data));
	bytes("another name", data, getxattr("moved", "user.b", data, sizeof data));
	close(fd);
	fd = open("moved", O_PATH);
	result("a path", fsetxattr(fd, "user.f", "f", 1, 0));
	result("a path to get", fgetxattr(fd, "user.b", data, 1));
	result("a path's list", flistxattr(fd, data, sizeof data));
	close(fd);
	result("closed", fsetxattr(fd, "user.f", "f", 1, 0));
	int ends[2];
	if (pipe(ends))
		abort();
	result("a pipe", fsetxattr(ends[0], "user.f", "f", 1, 0));
	result("a pipe, trusted", fsetxattr(ends[0], "trusted.f", "f", 1, 0));
	result("a pipe to get", fgetxattr(ends[0], "user.f", data, 1));
	result("a pipe's list", flistxattr(ends[0], data, 1));
	result("proc", setxattr("/proc/self/status", "user.a", "x", 1, 0));
	result("proc's list", listxattr("/proc/self/status", data, 1));
	result("proc to get", getxattr("/proc/self", "user.a", data, 1));
	result("capabilities", setxattr("moved", "security.capability", "x", 1, 0));

	make("other", 0600);
	make("locked", 0444);
	chmod("folder", 01777);
	result("mine", setxattr("other", "user.a", "x", 1, 0));
	result("locked", setxattr("locked", "user.a", "x", 1, 0));
	pid_t child = fork();
	if (!child) {
		if (setresuid(1000, 1000, 1000))
			abort();
		result("a user", setxattr("moved", "user.a", "x", 1, 0));
		bytes("a user reads", data, getxattr("moved", "user.b", data, sizeof data));
		bytes("a user's list", data, listxattr("moved", data, sizeof data));
		result("a user, trusted", setxattr("moved", "trusted.a", "x", 1, 0));
		result("a user, trusted to get", getxattr("moved", "trusted.a", data, 1));
		result("a user, trusted to remove", removexattr("moved", "trusted.a"));
		result("a user, security", setxattr("moved", "security.b", "x", 1, 0));
		bytes("a user, security to get", data, getxattr("moved", "security.a", data, 1));
		result("secret", getxattr("other", "user.a", data, 1));
		result("secret list", listxattr("other", data, sizeof data));
		result("locked", setxattr("locked", "user.a", "x", 1, 0));
		result("a sticky folder", setxattr("folder", "user.b", "x", 1, 0));
		result("unknown", setxattr("moved", "other.a", "x", 1, 0));
		result("unknown to get", getxattr("moved", "other.a", data, 1));
		_exit(0);
	}
	reap("child", child);
	leave();
}

static int held, made;

static void *
divide(void *what)
{
	const char *name = what;
	if (*name == 'c') {
		result("thread: unshare", unshare(CLONE_FS));
		result("thread: change", chdir("/proc"));
		umask(0);
	} else {
		result("thread: unshare", unshare(CLONE_FILES));
		result("thread: close", close(held));
		made = dup(1);
		pid_t child = fork();
		if (!child) {
			say("a child of it: %s", fcntl(held, F_GETFD) == 0 && made == held ? "its table" : "another table");
			_exit(0);
		}
		reap("its child", child);
		close(held);
	}
	return NULL;
}

static int
close_it(void *what)
{
	(void)what;
	close(held);
	_exit(0);
}

static int
unshare_and_close(void *what)
{
	(void)what;
	CALL(unshare, CLONE_FILES);
	close(held);
	_exit(0);
}

static int
end(void *what)
{
	(void)what;
	_exit(0);
}

CASE(unsharing)
{
	pthread_t thread;
	char text[64];
	result("nothing", CALL(unshare, 0));
	result("a flag", CALL(unshare, 1));
	result("parent", CALL(unshare, CLONE_PARENT));
	result("files", CALL(unshare, CLONE_FILES));
	result("undo", CALL(unshare, CLONE_SYSVSEM));
	result("a thread's", CALL(unshare, CLONE_THREAD));
	result("memory", CALL(unshare, CLONE_VM | CLONE_SIGHAND));
	if (chdir("/"))
		abort();
	umask(022);
	pthread_create(&thread, NULL, divide, "cwd");
	pthread_join(thread, NULL);
	say("%s %o", getcwd(text, sizeof text), umask(022));
	held = dup(1);
	pthread_create(&thread, NULL, divide, "files");
	pthread_join(thread, NULL);
	say("still %s", fcntl(held, F_GETFD) == 0 ? "open" : "closed");
	static char stack[65536];
	pid_t child = clone(end, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	reap("a sharer ends", child);
	say("still %s", fcntl(held, F_GETFD) == 0 ? "open" : "closed");
	child = clone(unshare_and_close, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	reap("a sharer leaves", child);
	say("still %s", fcntl(held, F_GETFD) == 0 ? "open" : "closed");
	child = clone(close_it, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL);
	reap("a sharer closes", child);
	say("now %s", fcntl(held, F_GETFD) == 0 ? "open" : "closed");

	int fd = open("/proc/self/ns/uts", O_RDONLY);
	worked("name space", fd);
	struct stat status;
	result("stat", fstat(fd, &status));
	text[readlink("/proc/self/ns/uts", text, sizeof text - 1)] = 0;
	char expected[64];
	snprintf(expected, sizeof expected, "uts:[%llu]", (unsigned long long)status.st_ino);
	say("%s, %o, %ld", strcmp(text, expected) ? "differ" : "the same", status.st_mode, (long)status.st_size);
	result("kind", ioctl(fd, 0xb703) == CLONE_NEWUTS ? 0 : -1);
	result("read", read(fd, text, 1));
	result("wrong kind", CALL(setns, fd, CLONE_NEWIPC));
	result("pipe", CALL(setns, 1, 0));
	result("closed", CALL(setns, 99, 0));
	child = fork();
	if (!child) {
		if (setresuid(1000, 1000, 1000))
			abort();
		result("a user", CALL(setns, fd, 0));
		result("a user, new", CALL(unshare, CLONE_NEWUTS));
		result("a user, files", CALL(unshare, CLONE_FILES | CLONE_FS));
		_exit(0);
	}
	reap("child", child);
}

CASE(flags)
{
	char data[64];
	int ends[2], null = open("/dev/null", O_RDWR), folder = open("/", O_RDONLY | O_DIRECTORY);
	enter();
	make("file", 0644);
	int file = open("file", O_RDWR), path = open("file", O_PATH), proc = open("/proc/self/status", O_RDONLY);
	if (pipe(ends))
		abort();
	int all[] = { file, path, ends[0], null, proc, 99 };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		say("file %zu", i);
		result("fsync", fsync(all[i]));
		result("fdatasync", fdatasync(all[i]));
		result("syncfs", CALL(syncfs, all[i]));
		result("sync_file_range", sync_file_range(all[i], 0, 1, 1));
		result("posix_fadvise", posix_fadvise(all[i], 0, 0, 0));
		result("readahead", readahead(all[i], 0, 1));
	}
	result("fsync of a folder", fsync(folder));
	result("a flag", sync_file_range(file, 0, 1, 8));
	result("negative", sync_file_range(file, -1, 1, 1));
	result("negative size", sync_file_range(file, 5, -1, 1));
	result("advice", posix_fadvise(file, 0, 0, 6));
	result("advice about less than nothing", posix_fadvise(file, 0, -1, 0));
	result("random", getrandom(data, 8, 3));
	result("more random", getrandom(data, 8, 4));
	result("insecure", getrandom(data, 8, 6));
	result("a flag", getrandom(data, 8, 8));
	result("memory file", CALL(memfd_create, "x", 0x4000000));
	result("memory file", CALL(memfd_create, "x", 0x80000));
	char name[260];
	memset(name, 'n', sizeof name);
	name[250] = 0;
	result("a long name", CALL(memfd_create, name, 0));
	name[249] = 0;
	worked("a name", CALL(memfd_create, name, 1));
	result("log", klogctl(11, data, 1));
	result("log", klogctl(-1, data, 1));
	result("log to nowhere", klogctl(3, NULL, 1));
	result("less than nothing", klogctl(3, data, -1));
	result("nothing", klogctl(2, data, 0));
	result("level", klogctl(8, NULL, 9));
	result("stat", fstatat(AT_FDCWD, "file", &(struct stat){ 0 }, 0x10));
	struct statx more;
	result("statx", statx(AT_FDCWD, "file", 0x10, 0x7ff, &more));
	result("statx", statx(AT_FDCWD, "file", 0x6000, 0x7ff, &more));
	result("statx", CALL(statx, AT_FDCWD, "file", 0, 0x80000000, &more));
	result("chown", fchownat(AT_FDCWD, "file", -1, -1, 0x10));
	result("times", utimensat(AT_FDCWD, "file", NULL, 0x10));
	result("link", linkat(AT_FDCWD, "file", AT_FDCWD, "other", 0x10));
	result("unlink", unlinkat(AT_FDCWD, "file", 0x10));
	result("fchmod", fchmod(path, 0600));
	result("fchown", fchown(path, 0, 0));
	result("close_range", CALL(close_range, 90, 95, 1));

	char own[32];
	snprintf(own, sizeof own, "/proc/%d", getpid());
	int process = open(own, O_RDONLY | O_DIRECTORY), hollow = open(own, O_PATH | O_DIRECTORY);
	signal(SIGUSR1, SIG_IGN);
	result("process", CALL(pidfd_send_signal, process, SIGUSR1, NULL, 0));
	result("path", CALL(pidfd_send_signal, hollow, SIGUSR1, NULL, 0));
	result("folder", CALL(pidfd_send_signal, folder, SIGUSR1, NULL, 0));
	result("number", CALL(pidfd_send_signal, process, 1000, NULL, 0));
	snprintf(own, sizeof own, "/proc/%d/task/%d", getpid(), getpid());
	int task = open(own, O_RDONLY | O_DIRECTORY);
	result("task", CALL(pidfd_send_signal, task, SIGUSR1, NULL, 0));
	pid_t child = fork();
	if (!child) {
		sleep_ms(5000);
		_exit(0);
	}
	snprintf(own, sizeof own, "/proc/%d", child);
	process = open(own, O_RDONLY | O_DIRECTORY);
	result("child", CALL(pidfd_send_signal, process, SIGKILL, NULL, 0));
	reap("child", child);
	result("reaped", CALL(pidfd_send_signal, process, 0, NULL, 0));
	child = fork();
	if (!child) {
		if (setresuid(1000, 1000, 1000))
			abort();
		result("a user's level", klogctl(8, NULL, 4));
		result("a user hangs up", CALL(vhangup));
		_exit(0);
	}
	reap("child", child);
	leave();
}
