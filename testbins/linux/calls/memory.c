/* Calls about memory, with arguments of all kinds. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#define PAGE 4096
#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

enum { RW = PROT_READ | PROT_WRITE };

/* Pages that are zeros, with `gap` missing (-1: none). */
static char *
pages(int count, int gap, int protection, int flags)
{
	char *at = mmap(NULL, (size_t)count * PAGE, protection, flags | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		abort();
	if (gap >= 0)
		munmap(at + gap * PAGE, PAGE);
	return at;
}

static long
locked(void)
{
	char line[256];
	long found = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		sscanf(line, "VmLck: %ld", &found);
	if (status)
		fclose(status);
	return found;
}

CASE(synchronize)
{
	char *at = pages(4, 2, RW, MAP_PRIVATE);
	result("all", CALL(msync, at, 2 * PAGE, MS_SYNC));
	result("unaligned", CALL(msync, at + 1, PAGE, MS_SYNC));
	result("a flag", CALL(msync, at, PAGE, 8));
	result("both", CALL(msync, at, PAGE, MS_SYNC | MS_ASYNC));
	result("none", CALL(msync, at, PAGE, 0));
	result("gap", CALL(msync, at, 4 * PAGE, MS_SYNC));
	result("gap, later", CALL(msync, at, 4 * PAGE, MS_ASYNC));
	result("nothing", CALL(msync, at, 0, MS_SYNC));
	result("no memory", CALL(msync, at + 2 * PAGE, 0, MS_SYNC));
	result("too long", CALL(msync, at, -2L * PAGE, MS_SYNC));
	result("around", CALL(msync, at, -1L, MS_SYNC));
	result("lock", mlock(at, PAGE));
	result("a locked one", CALL(msync, at, PAGE, MS_INVALIDATE));
	result("another", CALL(msync, at + PAGE, PAGE, MS_INVALIDATE | MS_ASYNC));
}

CASE(lock)
{
	char *at = pages(8, 5, RW, MAP_PRIVATE);
	result("lock", CALL(mlock, at, 2 * PAGE));
	say("%ld", locked());
	result("within pages", CALL(mlock, at + 100, PAGE));
	say("%ld", locked());
	result("nothing", CALL(mlock, at, 0));
	result("gap", CALL(mlock, at + 3 * PAGE, 4 * PAGE));
	say("%ld", locked());
	result("no memory", CALL(mlock, at + 5 * PAGE, PAGE));
	result("too long", CALL(mlock, at, -2L * PAGE));
	result("around", CALL(mlock, at, -1L));
	result("unlock a part", CALL(munlock, at, PAGE));
	say("%ld", locked());
	result("unlock over the gap", CALL(munlock, at, 8 * PAGE));
	say("%ld", locked());
	result("unlock too much", CALL(munlock, at, -2L * PAGE));
	result("on fault", CALL(mlock2, at, PAGE, 1));
	result("a flag", CALL(mlock2, at, PAGE, 2));
	result("without flags", CALL(mlock2, at + PAGE, PAGE, 0));
	say("%ld", locked());
	pid_t child = fork();
	if (!child) {
		say("a child: %ld", locked());
		_exit(0);
	}
	reap("child", child);
	result("drop a locked page", CALL(madvise, at, PAGE, MADV_DONTNEED));
	result("all the same", CALL(madvise, at, PAGE, 24));
	result("free it", CALL(madvise, at, PAGE, MADV_FREE));
	result("page it out", CALL(madvise, at, PAGE, 21));
	munmap(at, 8 * PAGE);
	say("%ld", locked());
	char *none = pages(1, -1, PROT_NONE, MAP_PRIVATE);
	result("no rights", CALL(mlock, none, PAGE));
	munmap(none, PAGE);
	result("all: nothing", CALL(mlockall, 0));
	result("all: a flag", CALL(mlockall, 8));
	result("all: on fault", CALL(mlockall, 4));
	result("all: later", CALL(mlockall, MCL_FUTURE | MCL_ONFAULT));
	say("%ld", locked());
	at = pages(4, -1, RW, MAP_PRIVATE);
	say("%ld", locked());
	result("all: no longer", CALL(munlockall));
	say("%ld", locked());
	result("map", mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED ? -1 : 0);
	say("%ld", locked());
	munlockall();
	child = fork();
	if (!child) {
		struct rlimit limit = { 2 * PAGE, 2 * PAGE };
		setrlimit(RLIMIT_MEMLOCK, &limit);
		if (setresuid(1000, 1000, 1000))
			abort();
		result("two", CALL(mlock, at, 2 * PAGE));
		result("the same", CALL(mlock, at + PAGE, PAGE));
		result("three", CALL(mlock, at, 3 * PAGE));
		result("one more", CALL(mlock, at + 2 * PAGE, PAGE));
		result("all", CALL(mlockall, MCL_CURRENT));
		result("later", CALL(mlockall, MCL_FUTURE));
		result("map", mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
		munlockall();
		limit.rlim_cur = 0;
		setrlimit(RLIMIT_MEMLOCK, &limit);
		result("none", CALL(mlock, at, PAGE));
		result("none, all", CALL(mlockall, MCL_CURRENT));
		result("unlock", CALL(munlock, at, PAGE));
		_exit(0);
	}
	reap("child", child);
}

#ifdef __i386__
#define SEALED(what, call, here) \
	do { \
		errno = here; \
		result(what, here ? -1 : 0); \
	} while (0)
#else
#define SEALED(what, call, here) result(what, call)
#endif
#define REFUSED(what, call) SEALED(what, call, EPERM)

CASE(seal)
{
	char *at = pages(8, 7, RW, MAP_PRIVATE);
	char *other = pages(2, -1, RW, MAP_PRIVATE);
#ifdef __i386__
	if (CALL(mseal, at, PAGE, 0) != -1 || errno != ENOSYS)
		say("mseal on i386");
#endif
	(void)other;
	SEALED("a flag", CALL(mseal, at, PAGE, 1), EINVAL);
	SEALED("unaligned", CALL(mseal, at + 1, PAGE, 0), EINVAL);
	SEALED("nothing", CALL(mseal, at, 0, 0), 0);
	SEALED("around", CALL(mseal, at, -1L, 0), EINVAL);
	SEALED("too long", CALL(mseal, at, -2L * PAGE, 0), EINVAL);
	SEALED("gap", CALL(mseal, at, 8 * PAGE, 0), ENOMEM);
	result("still open", mprotect(at, 7 * PAGE, RW));
	at[PAGE] = 1;
	SEALED("seal", CALL(mseal, at + PAGE, 2 * PAGE - 1, 0), 0);
	SEALED("again", CALL(mseal, at + 2 * PAGE, 2 * PAGE, 0), 0);
	REFUSED("protect", mprotect(at + PAGE, PAGE, PROT_READ));
	REFUSED("protect more", mprotect(at, 2 * PAGE, PROT_READ));
	REFUSED("unmap", munmap(at + 2 * PAGE, PAGE));
	REFUSED("unmap more", munmap(at, 7 * PAGE));
	REFUSED("map over it", mmap(at + PAGE, PAGE, RW, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
	REFUSED("make it larger", mremap(at + 3 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0);
	REFUSED("move it", mremap(at + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other) == MAP_FAILED ? -1 : 0);
	REFUSED("move on it", mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE) == MAP_FAILED ? -1 : 0);
	result("drop what can be written", madvise(at + 2 * PAGE, PAGE, MADV_DONTNEED));
	say("%d", at[PAGE]);
	result("protect the rest", mprotect(at + 4 * PAGE, 2 * PAGE, PROT_READ));
	SEALED("seal the rest", CALL(mseal, at + 4 * PAGE, PAGE, 0), 0);
	REFUSED("drop", madvise(at + 4 * PAGE, PAGE, MADV_DONTNEED));
	REFUSED("not in a child", madvise(at + 4 * PAGE, PAGE, MADV_DONTFORK));
	result("harmless", madvise(at + 4 * PAGE, PAGE, MADV_WILLNEED));
	result("beside", munmap(at + 5 * PAGE, PAGE));
	pid_t child = fork();
	if (!child) {
		REFUSED("in a child", munmap(at + 2 * PAGE, PAGE));
		_exit(0);
	}
	reap("child", child);
}

static int
readable(const char *at)
{
	int ends[2];
	if (pipe(ends))
		abort();
	int can = write(ends[1], at, 1) == 1;
	close(ends[0]);
	close(ends[1]);
	return can;
}

CASE(advice)
{
	char *at = pages(6, 4, RW, MAP_PRIVATE);
	for (int advice = -1; advice < 25; advice++) {
		char what[16];
		sprintf(what, "%d", advice);
		/* KSM and huge pages may be missing in a kernel, and 5 to 7 mean nothing. */
		if (advice == 9 || (advice >= 12 && advice <= 15))
			continue;
		result(what, CALL(madvise, at, PAGE, advice));
	}
	madvise(at, PAGE, MADV_DOFORK);
	madvise(at, PAGE, MADV_KEEPONFORK);
	result("unaligned", CALL(madvise, at + 1, PAGE, MADV_NORMAL));
	result("nothing", CALL(madvise, at, 0, MADV_NORMAL));
	result("wrong, of nothing", CALL(madvise, at, 0, 77));
	result("around", CALL(madvise, at, -1L, MADV_NORMAL));
	result("too long", CALL(madvise, at, -2L * PAGE, MADV_NORMAL));
	memset(at, 1, 4 * PAGE);
	at[5 * PAGE] = 1;
	result("drop over the gap", CALL(madvise, at + PAGE, 5 * PAGE, MADV_DONTNEED));
	say("%d %d %d", at[0], at[PAGE], at[5 * PAGE]);
	result("no memory", CALL(madvise, at + 4 * PAGE, PAGE, MADV_NORMAL));
	result("populate", CALL(madvise, at, 4 * PAGE, 23));
	result("populate the gap", CALL(madvise, at, 6 * PAGE, 22));
	char *fixed = pages(1, -1, PROT_READ, MAP_PRIVATE);
	result("populate for reading", CALL(madvise, fixed, PAGE, 22));
	result("populate for writing", CALL(madvise, fixed, PAGE, 23));

	char *shared = pages(3, -1, RW, MAP_SHARED);
	memset(at, 2, 3 * PAGE);
	memset(shared, 3, 3 * PAGE);
	result("shared: free", CALL(madvise, shared, PAGE, MADV_FREE));
	result("shared: wipe", CALL(madvise, shared, PAGE, MADV_WIPEONFORK));
	result("shared: drop", CALL(madvise, shared, PAGE, MADV_DONTNEED));
	say("%d", shared[0]);
	result("shared: remove", CALL(madvise, shared + PAGE, PAGE, MADV_REMOVE));
	result("private: remove", CALL(madvise, at, PAGE, MADV_REMOVE));
	say("%d %d %d", shared[0], shared[PAGE], shared[2 * PAGE]);
	result("not in a child", CALL(madvise, at + PAGE, PAGE, MADV_DONTFORK));
	result("wipe", CALL(madvise, at + 2 * PAGE, PAGE, MADV_WIPEONFORK));
	pid_t child = fork();
	if (!child) {
		say("a child: %d, %s, %d", at[0], readable(at + PAGE) ? "there" : "gone", at[2 * PAGE]);
		at[2 * PAGE] = 9;
		pid_t grandchild = fork();
		if (!grandchild) {
			say("its child: %d", at[2 * PAGE]);
			_exit(0);
		}
		reap("its child", grandchild);
		_exit(0);
	}
	reap("child", child);
	say("its parent: %d %d %d", at[0], at[PAGE], at[2 * PAGE]);
	result("in a child", CALL(madvise, at + PAGE, PAGE, MADV_DOFORK));
	result("kept", CALL(madvise, at + 2 * PAGE, PAGE, MADV_KEEPONFORK));
	child = fork();
	if (!child) {
		say("a child: %d %d %d", at[0], at[PAGE], at[2 * PAGE]);
		_exit(0);
	}
	reap("child", child);

	int fd = memfd_create("file", 0);
	if (ftruncate(fd, 3 * PAGE))
		abort();
	char *file = mmap(NULL, 3 * PAGE, RW, MAP_SHARED, fd, 0);
	memset(file, 5, 3 * PAGE);
	result("file: remove", CALL(madvise, file + PAGE, PAGE, MADV_REMOVE));
	char of_file[3] = { 7, 7, 7 };
	for (int i = 0; i < 3; i++)
		if (pread(fd, &of_file[i], 1, i * PAGE) != 1)
			abort();
	say("%d %d %d, %d %d %d", file[0], file[PAGE], file[2 * PAGE], of_file[0], of_file[1], of_file[2]);
	result("file: wipe", CALL(madvise, file, PAGE, MADV_WIPEONFORK));
	char *copy = mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
	copy[0] = 8;
	result("copy: remove", CALL(madvise, copy, PAGE, MADV_REMOVE));
	result("copy: free", CALL(madvise, copy, PAGE, MADV_FREE));
	result("copy: drop", CALL(madvise, copy, PAGE, MADV_DONTNEED));
	say("%d", copy[0]);
	result("end", ftruncate(fd, PAGE));
	file = mmap(NULL, 3 * PAGE, RW, MAP_SHARED, fd, 0);
	result("populate after the end", CALL(madvise, file, 2 * PAGE, 22));
	result("lock after the end", CALL(mlock, file, 2 * PAGE));
}

static void
moved(const char *what, const char *at, const char *expected)
{
	if (at == MAP_FAILED)
		say("%s: %s", what, strerrorname_np(errno));
	else
		say("%s: %s", what, at == expected ? "there" : "elsewhere");
}

static void *
again(void *old, size_t size, size_t new_size, int flags, void *to)
{
	return (void *)CALL(mremap, old, size, new_size, flags, to);
}

CASE(remap)
{
	enum { MOVE = MREMAP_MAYMOVE, FIXED = MREMAP_FIXED, KEEP = 4 };
	char *at = pages(16, -1, RW, MAP_PRIVATE);
	char *to = pages(16, -1, RW, MAP_PRIVATE);
	munmap(at + 4 * PAGE, 12 * PAGE);
	memset(at, 1, 4 * PAGE);
	moved("a flag", again(at, PAGE, PAGE, 8, 0), at);
	moved("fixed without move", again(at, PAGE, PAGE, FIXED, to), to);
	moved("keep without move", again(at, PAGE, PAGE, KEEP, 0), at);
	moved("keep, another size", again(at, PAGE, 2 * PAGE, MOVE | KEEP, 0), at);
	moved("unaligned", again(at + 1, PAGE, PAGE, MOVE, 0), at);
	moved("to nothing", again(at, PAGE, 0, MOVE, 0), at);
	moved("around", again(at, PAGE, -1L, MOVE, 0), at);
	moved("not mapped", again(at + 5 * PAGE, PAGE, PAGE, MOVE, 0), at);
	moved("unaligned place", again(at, PAGE, PAGE, MOVE | FIXED, to + 1), to);
	moved("overlap", again(at, 2 * PAGE, 2 * PAGE, MOVE | FIXED, at + PAGE), to);
	moved("itself", again(at, PAGE, PAGE, MOVE | FIXED, at), to);
	moved("beyond", again(at, PAGE, PAGE, MOVE | FIXED, (void *)(-2L * PAGE)), to);
	moved("from nothing, private", again(at, 0, PAGE, MOVE, 0), to);
	moved("over the end", again(at + 3 * PAGE, 2 * PAGE, 3 * PAGE, MOVE, 0), to);
	moved("the same", again(at, 4 * PAGE, 4 * PAGE, 0, 0), at);
	moved("larger in place", again(at, 4 * PAGE, 5 * PAGE, 0, 0), at);
	moved("smaller", again(at, 5 * PAGE, 4 * PAGE, 0, 0), at);
	moved("no room", again(at, PAGE, 2 * PAGE, 0, 0), at);
	moved("fixed", again(at, PAGE, 2 * PAGE, MOVE | FIXED, to), to);
	say("%d %d", to[0], to[PAGE]);
	say("%s", readable(at) ? "left" : "gone");
	moved("smaller and fixed", again(at + PAGE, 2 * PAGE, PAGE, MOVE | FIXED, to + 4 * PAGE), to + 4 * PAGE);
	say("%d, %s", to[4 * PAGE], readable(at + 2 * PAGE) ? "left" : "gone");
	at[3 * PAGE] = 6;
	moved("keep", again(at + 3 * PAGE, PAGE, PAGE, MOVE | KEEP | FIXED, to + 8 * PAGE), to + 8 * PAGE);
	say("%d %d", at[3 * PAGE], to[8 * PAGE]);
	moved("keep anywhere", again(to + 8 * PAGE, PAGE, PAGE, MOVE | KEEP, 0), NULL);
	say("%d", to[8 * PAGE]);
	char *shared = pages(2, -1, RW, MAP_SHARED);
	shared[PAGE] = 4;
	char *twin = again(shared + PAGE, 0, PAGE, MOVE, 0);
	moved("from nothing, shared", twin, NULL);
	twin[0]++;
	say("%d", shared[PAGE]);
	moved("from nothing, stay", again(shared, 0, PAGE, 0, 0), NULL);
	result("halves", mprotect(shared, PAGE, PROT_READ));
	moved("over two", again(shared, 2 * PAGE, 3 * PAGE, MOVE, 0), NULL);
	result("whole", mprotect(shared, PAGE, RW));
	moved("over one", again(shared, 2 * PAGE, 3 * PAGE, MOVE | FIXED, to), to);
}

CASE(protect)
{
	char *at = pages(4, 2, RW, MAP_PRIVATE);
	result("unaligned", CALL(mprotect, at + 1, PAGE, PROT_READ));
	result("nothing", CALL(mprotect, at, 0, PROT_READ));
	result("around", CALL(mprotect, at, -1L, PROT_READ));
	result("a right", CALL(mprotect, at, PAGE, 0x40));
	result("up and down", CALL(mprotect, at, PAGE, PROT_READ | 0x03000000));
	result("semaphores", CALL(mprotect, at, PAGE, RW | 8));
	result("gap", CALL(mprotect, at, 4 * PAGE, PROT_NONE));
	say("%d %d", readable(at), readable(at + 3 * PAGE));
	result("no memory first", CALL(mprotect, at + 2 * PAGE, 2 * PAGE, PROT_NONE));
	say("%d", readable(at + 3 * PAGE));
	result("key", CALL(pkey_mprotect, at, PAGE, PROT_READ, -1));
	result("no key", CALL(pkey_mprotect, at, PAGE, PROT_READ, 77));
	int fd = memfd_create("file", 0);
	if (ftruncate(fd, 2 * PAGE))
		abort();
	moved("validated, anonymous", mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0), NULL);
	moved("validated", mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_POPULATE, fd, 0), NULL);
	moved("validated, a flag", mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | 0x4000000 << 5, fd, 0), NULL);
}
