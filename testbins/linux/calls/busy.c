/* Programs that run and are written, and the order in which openat2 checks. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPY "/tmp/calls-busy"

static void
copy_self(void)
{
	char data[65536];
	int from = open("/proc/self/exe", O_RDONLY), to = open(COPY, O_CREAT | O_TRUNC | O_WRONLY, 0755);
	long size;
	while ((size = read(from, data, sizeof data)) > 0)
		if (write(to, data, (size_t)size) != size)
			abort();
	close(from);
	close(to);
}

/* Starts the copy, which waits for a byte; returns once it runs. */
static pid_t
run_copy(int *to)
{
	int in[2], out[2];
	char byte;
	if (pipe(in) || pipe(out))
		abort();
	pid_t child = fork();
	if (!child) {
		dup2(in[0], 0);
		dup2(out[1], 3);
		for (int fd = 4; fd < 32; fd++)
			close(fd);
		execl(COPY, COPY, "busy_child", (char *)NULL);
		_exit(9);
	}
	close(in[0]);
	close(out[1]);
	if (read(out[0], &byte, 1) != 1)
		abort();
	close(out[0]);
	*to = in[1];
	return child;
}

CASE(busy_child)
{
	char byte = 'x';
	if (write(3, &byte, 1) == 1 && read(0, &byte, 1) < 0)
		abort();
}

CASE(busy_text)
{
	int to;
	unlink(COPY);
	copy_self();
	pid_t child = run_copy(&to);
	worked("to write", open(COPY, O_WRONLY));
	worked("to read and write", open(COPY, O_RDWR));
	worked("to cut", open(COPY, O_WRONLY | O_TRUNC));
	worked("to cut, for reading", open(COPY, O_RDONLY | O_TRUNC));
	result("truncate", truncate(COPY, 10));
	int reading = open(COPY, O_RDONLY);
	worked("to read", reading);
	result("chmod", chmod(COPY, 0755));
	result("rename", rename(COPY, COPY "2"));
	worked("by its other name", open(COPY "2", O_WRONLY));
	result("unlink", unlink(COPY "2"));
	close(reading);
	if (write(to, "x", 1) != 1)
		abort();
	close(to);
	reap("child", child);

	copy_self();
	int writing = open(COPY, O_RDWR);
	worked("nobody runs it", writing);
	result("is run while it is open for writing", execl(COPY, COPY, "busy_child", (char *)NULL));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writing, 0);
	close(writing);
	result("is run while it is mapped for writing", page == MAP_FAILED ? -1 : execl(COPY, COPY, "busy_child", NULL));
	munmap(page, 4096);
	int to2;
	child = run_copy(&to2);
	worked("again to write", open(COPY, O_WRONLY));
	close(to2);
	reap("child", child);
	worked("it has ended", open(COPY, O_WRONLY));
	unlink(COPY);
}

static long
openat2(int directory, const char *path, const void *how, size_t size)
{
	return syscall(SYS_openat2, directory, path, how, size);
}

CASE(openat2_order)
{
	struct { struct open_how how; uint64_t more[512]; } how;
	memset(&how, 0, sizeof how);
	const size_t size = sizeof how.how;
	how.how.flags = 1ull << 40;
	result("bad flags, no such path", openat2(AT_FDCWD, "/nowhere", &how, size));
	result("bad flags, bad path", openat2(AT_FDCWD, nowhere, &how, size));
	result("bad flags, no directory", openat2(77, "file", &how, size));
	result("short, bad pointer", openat2(AT_FDCWD, nowhere, nowhere, 8));
	result("bad pointer", openat2(AT_FDCWD, "/nowhere", nowhere, size));
	result("too long", openat2(AT_FDCWD, "/nowhere", &how, 8192));
	how.how.flags = 0;
	how.more[0] = 1;
	result("more than is known", openat2(AT_FDCWD, nowhere, &how, size + 8));
	how.more[0] = 0;
	result("more zeros", openat2(AT_FDCWD, "/nowhere", &how, size + 8));
	how.how.mode = 0600;
	result("a mode without O_CREAT", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_CREAT;
	how.how.mode = 010000;
	result("a mode that is not one", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_CREAT | O_DIRECTORY;
	how.how.mode = 0600;
	result("a directory to be made", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_RDONLY;
	how.how.mode = 0;
	how.how.resolve = 1ull << 33;
	result("no such way", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.resolve = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
	result("two roots", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.resolve = RESOLVE_CACHED;
	how.how.flags = O_CREAT;
	result("cached and made", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.resolve = 0;
	how.how.flags = O_PATH | O_WRONLY;
	result("O_PATH with more", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_TMPFILE | O_RDWR;
	result("O_TMPFILE", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_TMPFILE;
	result("O_TMPFILE for reading", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = O_CREAT | O_PATH;
	result("O_PATH and O_CREAT", openat2(AT_FDCWD, nowhere, &how, size));
	how.how.flags = 0;
	result("bad path", openat2(AT_FDCWD, nowhere, &how, size));
	result("empty path", openat2(AT_FDCWD, "", &how, size));
	result("no directory", openat2(77, "file", &how, size));
	how.how.resolve = RESOLVE_BENEATH;
	result("above", openat2(AT_FDCWD, "/etc", &how, size));
	how.how.resolve = RESOLVE_NO_SYMLINKS;
	result("a link", openat2(AT_FDCWD, "/proc/self/exe", &how, size));
	how.how.resolve = RESOLVE_NO_MAGICLINKS;
	result("a link of /proc", openat2(AT_FDCWD, "/proc/self/exe", &how, size));
}
