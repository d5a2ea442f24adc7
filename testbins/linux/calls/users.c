/* Users and groups: who a process is, what it may do with files, and what others may do to it. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "calls.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/usersXXXXXX";

static void
who(const char *what)
{
	uid_t uid[3];
	gid_t gid[3];
	getresuid(&uid[0], &uid[1], &uid[2]);
	getresgid(&gid[0], &gid[1], &gid[2]);
	say("%s: uid %u %u %u, gid %u %u %u", what, uid[0], uid[1], uid[2], gid[0], gid[1], gid[2]);
}

static void
owner(const char *what, const char *path)
{
	struct stat status;
	if (lstat(path, &status) < 0) {
		result(what, -1);
		return;
	}
	say("%s: %u:%u %o", what, status.st_uid, status.st_gid, status.st_mode & 07777);
}

static void
enter(void)
{
	strcpy(directory, "/tmp/usersXXXXXX");
	if (!mkdtemp(directory) || chdir(directory) || chmod(directory, 0755))
		abort();
	umask(022);
}

CASE(users)
{
	who("at the start");
	pid_t child = fork();
	if (child == 0) {
		result("saved", setresuid(1000, 1000, 2000));
		who("after");
		result("effective", seteuid(2000));
		who("after");
		result("swap", setreuid(2000, 1000));
		who("after");
		result("root", setuid(0));
		result("another", setresuid(-1, 3000, -1));
		result("nothing", setresuid(-1, -1, -1));
		result("a group", setgid(5));
		result("groups", setgroups(0, 0));
		who("after");
		_exit(0);
	}
	reap("child", child);
	child = fork();
	if (child == 0) {
		gid_t groups[] = { 30, 10, 20 }, told[4];
		result("groups", setgroups(3, groups));
		result("how many", getgroups(0, told));
		result("too few", getgroups(2, told));
		int count = getgroups(4, told);
		say("%d: %u %u %u", count, told[0], told[1], told[2]);
		result("group", setregid(10, 20));
		result("user", setreuid(1, 2));
		who("after");
		result("the real one", setreuid(-1, 1));
		who("after");
		result("back", seteuid(2));
		result("fsuid", setfsuid(1));
		result("fsuid again", setfsuid(-1));
		result("fsuid of root", setfsuid(0));
		result("fsuid now", setfsuid(-1));
		_exit(0);
	}
	reap("child", child);
	result("not a user", setuid(-1));
	who("at the end");
}

CASE(owners)
{
	enter();
	mkdir("open", 0777);
	chmod("open", 0777);
	mkdir("sticky", 01777);
	chmod("sticky", 01777);
	mkdir("group", 0777);
	chown("group", 0, 50);
	chmod("group", 02777);
	mkdir("closed", 0700);
	int fd = open("mine", O_CREAT | O_WRONLY, 0600);
	close(fd);
	close(open("closed/file", O_CREAT | O_WRONLY, 0666));
	close(open("sticky/root", O_CREAT | O_WRONLY, 0666));
	close(open("program", O_CREAT | O_WRONLY, 0644));
	result("root looks whether it may run a file", access("program", X_OK));
	result("root runs it", execl("./program", "program", (char *)0));
	owner("file", "mine");
	owner("directory", "closed");
	pid_t child = fork();
	if (child == 0) {
		setgid(100);
		setuid(1000);
		result("read", open("mine", O_RDONLY));
		result("write", open("mine", O_WRONLY));
		result("a path", open("mine", O_PATH) < 0 ? -1 : 0);
		result("in a closed directory", open("closed/file", O_RDONLY));
		result("stat there", access("closed/file", F_OK));
		result("list it", open("closed", O_RDONLY | O_DIRECTORY));
		result("enter it", chdir("closed"));
		result("make", open("new", O_CREAT | O_WRONLY, 0666));
		result("make a directory", mkdir("newdir", 0777));
		result("remove", unlink("mine"));
		result("rename", rename("mine", "open/mine"));
		result("chmod", chmod("mine", 0666));
		result("chown", chown("mine", 1000, 100));
		result("truncate", truncate("mine", 0));
		result("make in the open one", open("open/new", O_CREAT | O_RDWR, 0) < 0 ? -1 : 0);
		owner("it is the user's", "open/new");
		result("it cannot be read", open("open/new", O_RDONLY));
		result("the owner changes it", chmod("open/new", 04644));
		result("gives it away", chown("open/new", 2000, -1));
		result("to its own group", chown("open/new", -1, 100));
		owner("changed", "open/new");
		result("removes a file of root", unlink("sticky/root"));
		result("makes one", open("sticky/user", O_CREAT | O_RDWR, 0600) < 0 ? -1 : 0);
		result("removes it", unlink("sticky/user"));
		result("a group's directory", mkdir("group/sub", 0755));
		owner("inherits", "group/sub");
		result("chroot", chroot("open"));
		result("a signal to another", kill(getppid(), 0));
		result("a signal to itself", kill(0, 0) == 0 ? 0 : 0);
		_exit(0);
	}
	reap("child", child);
	result("chown", chown("open/new", 5, 6));
	owner("bits are gone", "open/new");
	child = fork();
	if (child == 0) {
		setresuid(1000, 0, 0);
		result("access asks the real user", access("mine", R_OK));
		result("faccessat the effective one", faccessat(AT_FDCWD, "mine", R_OK, AT_EACCESS));
		_exit(0);
	}
	reap("child", child);
	(void)chdir("/");
}
