/* Files and directories that are watched. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static void
heard(const char *what, int queue)
{
	static const char *names[] = { "ACCESS", "MODIFY", "ATTRIB", "CLOSE_WRITE", "CLOSE_NOWRITE", "OPEN", "MOVED_FROM",
		"MOVED_TO", "CREATE", "DELETE", "DELETE_SELF", "MOVE_SELF", 0, "UNMOUNT", "OVERFLOW", "IGNORED" };
	char buffer[4096] __attribute__((aligned(8)));
	long size = read(queue, buffer, sizeof buffer);
	result(what, size < 0 ? size : 0);
	for (long at = 0; at < size;) {
		struct inotify_event *one = (struct inotify_event *)(buffer + at);
		char line[200];
		snprintf(line, sizeof line, "  %d:", one->wd);
		for (int bit = 0; bit < 16; bit++)
			if (one->mask >> bit & 1 && names[bit])
				snprintf(line + strlen(line), sizeof line - strlen(line), " %s", names[bit]);
		say("%s%s%s%s%s", line, one->mask & IN_ISDIR ? " a directory" : "", one->len ? " " : "",
		    one->len ? one->name : "", one->cookie ? " (renamed)" : "");
		at += (long)(sizeof *one + one->len);
	}
}

CASE(inotify)
{
	char directory[] = "/tmp/calls-XXXXXX", byte;
	if (!mkdtemp(directory) || chdir(directory))
		exit(1);
	int queue = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	worked("inotify_init1", queue);
	result("flags", inotify_init1(1));
	result("watch", inotify_add_watch(queue, ".", IN_ALL_EVENTS));
	result("no such file", inotify_add_watch(queue, "nothing", IN_ALL_EVENTS));
	result("no events", inotify_add_watch(queue, ".", 0));
	result("not a queue", inotify_add_watch(0, ".", IN_OPEN));
	result("only a directory", inotify_add_watch(queue, "/proc/self/exe", IN_OPEN | IN_ONLYDIR));
	heard("nothing", queue);
	events("nothing", polled(queue));
	int file = open("file", O_RDWR | O_CREAT, 0600);
	heard("made", queue);
	result("write", write(file, "data", 4));
	result("write", write(file, "data", 4));
	result("read", pread(file, &byte, 1, 0));
	heard("written and read", queue);
	close(file);
	heard("closed", queue);
	result("watch the file", inotify_add_watch(queue, "file", IN_ALL_EVENTS));
	chmod("file", 0644);
	heard("chmod", queue);
	rename("file", "other");
	heard("renamed", queue);
	mkdir("folder", 0755);
	rmdir("folder");
	heard("a folder", queue);
	file = open("other", O_RDONLY);
	result("read", read(file, &byte, 1));
	close(file);
	heard("read", queue);
	unlink("other");
	heard("unlinked", queue);
	result("the watch is gone", inotify_rm_watch(queue, 2));
	result("again, for one event", inotify_add_watch(queue, ".", IN_CREATE | IN_ONESHOT));
	mkdir("one", 0755);
	mkdir("two", 0755);
	heard("one of two", queue);
	rmdir("one");
	rmdir("two");
	result("watch", inotify_add_watch(queue, ".", IN_CREATE));
	result("too short", (mkdir("long-name", 0755), read(queue, &byte, 1)));
	rmdir("long-name");
	int number = inotify_add_watch(queue, ".", IN_DELETE | IN_MASK_ADD);
	result("take it back", inotify_rm_watch(queue, number));
	heard("the end", queue);
	if (chdir("/") || rmdir(directory))
		say("rmdir");
}
