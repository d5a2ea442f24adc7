/* Directories: how many links they have, and where they are. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void
links_of(const char *what, const char *path)
{
	struct stat status;
	if (stat(path, &status))
		result(what, -1);
	else
		say("%s: %lu", what, (unsigned long)status.st_nlink);
}

static void
same(const char *what, const char *one, const char *other)
{
	struct stat first, second;
	say("%s: %s", what, stat(one, &first) || stat(other, &second) ? "none" : first.st_ino == second.st_ino ? "same" : "another");
}

CASE(directories)
{
	char name[] = "/tmp/calls-XXXXXX";
	struct stat status;
	mkdir("/tmp", 01777);
	if (!mkdtemp(name) || chdir(name))
		abort();
	links_of("empty", ".");
	result("make", mkdir("a", 0755) | mkdir("b", 0755) | mkdir("a/c", 0755) | mkdir("a/d", 0755));
	links_of("two", ".");
	links_of("two", "a");
	int fd = open("a/c", O_RDONLY | O_DIRECTORY);
	result("remove", rmdir("a/c"));
	links_of("one", "a");
	fstat(fd, &status);
	say("removed: %lu", (unsigned long)status.st_nlink);
	close(fd);
	result("move", rename("a/d", "b/d"));
	links_of("from", "a");
	links_of("to", "b");
	same("above it", "b/d/..", "b");
	result("make", mkdir("a/e", 0755));
	result("exchange", renameat2(AT_FDCWD, "a/e", AT_FDCWD, "b/d", RENAME_EXCHANGE));
	same("above it", "b/d/..", "b");
	same("above the other", "a/e/..", "a");
	result("over an empty one", rename("a/e", "b/d"));
	links_of("from", "a");
	links_of("to", "b");
	result("over a full one", rename("a", "b"));
	result("exchange with nothing", renameat2(AT_FDCWD, "a", AT_FDCWD, "none", RENAME_EXCHANGE));
	result("remove a full one", rmdir("b"));
	result("remove", rmdir("b/d") | rmdir("b") | rmdir("a"));
	links_of("empty", ".");
	rmdir(name);
}
