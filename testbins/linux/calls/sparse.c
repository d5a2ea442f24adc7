/* Files with holes: larger than any memory, and what is allocated in them. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "calls.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int
file(void)
{
	return memfd_create("sparse", 0);
}

static void
size(const char *what, int fd)
{
	struct stat status;
	if (fstat(fd, &status) < 0)
		abort();
	say("%s: size %lld, %s", what, (long long)status.st_size, status.st_blocks ? "with blocks" : "no blocks");
}

CASE(holes)
{
	int fd = file();
	char buffer[16] = { 0 };
	result("a terabyte", ftruncate(fd, (off_t)1 << 40));
	size("a terabyte", fd);
	result("write far out", pwrite(fd, "end", 3, ((off_t)1 << 40) - 3));
	size("a terabyte", fd);
	long got = pread(fd, buffer, 8, (off_t)1 << 39);
	bytes("a hole", buffer, got);
	got = pread(fd, buffer, 16, ((off_t)1 << 40) - 6);
	bytes("the end", buffer, got);
	say("data at %lld", (long long)lseek(fd, 0, SEEK_DATA));
	say("hole at %lld", (long long)lseek(fd, 0, SEEK_HOLE));
	result("shorter", ftruncate(fd, 10));
	size("ten", fd);
	result("data", lseek(fd, 0, SEEK_DATA));
	result("hole", lseek(fd, 3, SEEK_HOLE));
	result("hole behind the end", lseek(fd, 10, SEEK_HOLE));
	result("too long", ftruncate(fd, -1));
	result("write at the very end", pwrite(fd, "x", 1, 0x7fffffffffffffff));
	result("negative", pwrite(fd, "x", 1, -1));
}

CASE(allocated)
{
	int fd = file();
	char buffer[12] = { 0 };
	result("write", write(fd, "0123456789", 10));
	result("allocate", fallocate(fd, 0, 0, 8192));
	size("allocated", fd);
	result("beyond the end", fallocate(fd, FALLOC_FL_KEEP_SIZE, 8192, 4096));
	size("the same", fd);
	result("a hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 4));
	bytes("with a hole", buffer, pread(fd, buffer, 12, 0));
	result("a hole changes the size", fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1));
	result("nothing", fallocate(fd, 0, 0, 0));
	result("negative", fallocate(fd, 0, -1, 1));
	result("too much", fallocate(fd, 0, 0x7ffffffffffff000, 0x2000));
	result("no flag", fallocate(fd, 0x4000, 0, 1));
	int pipes[2];
	if (pipe(pipes))
		abort();
	result("a pipe", fallocate(pipes[1], 0, 0, 1));
	result("not to be written", fallocate(open("/proc/self/exe", O_RDONLY), 0, 0, 1));
}

CASE(mapped_hole)
{
	int fd = file();
	char buffer[8] = { 0 };
	if (ftruncate(fd, 3 * 4096 + 5))
		abort();
	char *memory = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	worked("mmap", (long)memory);
	strcpy(memory + 4096, "one");
	bytes("read", buffer, pread(fd, buffer, 4, 4096));
	result("write", pwrite(fd, "two", 3, 8192));
	bytes("mapped", memory + 8192, 4);
	result("longer", ftruncate(fd, 5 * 4096));
	memory[3 * 4096 + 100] = 'x';
	bytes("read", buffer, pread(fd, buffer, 1, 3 * 4096 + 100));
	result("shorter", ftruncate(fd, 4097));
	result("longer", ftruncate(fd, 8192));
	bytes("cut", memory + 4096, 4);
	size("two pages", fd);
}

static sigjmp_buf broken;

static void
on_bus(int number, siginfo_t *info, void *context)
{
	(void)context;
	say("signal %d, code %d", number, info->si_code);
	siglongjmp(broken, 1);
}

/* Reads the bytes of a mapping, each of which may raise SIGBUS. */
static void
look(const char *what, const volatile unsigned char *at)
{
	if (sigsetjmp(broken, 1))
		say("%s: nothing", what);
	else
		say("%s: %#x", what, *at);
}

CASE(cut)
{
	enum { PAGES = 4 };
	long page = sysconf(_SC_PAGESIZE);
	int fd = file(), again[2], cut[2];
	struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	sigaction(SIGBUS, &action, NULL);
	if (pipe(again) < 0 || pipe(cut) < 0 || ftruncate(fd, PAGES * page) < 0)
		abort();
	unsigned char *shared = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	unsigned char *own = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	unsigned char *last = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, 2 * page);
	memset(shared, 'a', PAGES * page);
	memset(own, 'b', PAGES * page);
	look("the last page of the later part", last + page);
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		look("a child before", shared + 2 * page);
		if (write(again[1], "", 1) < 0 || read(cut[0], &byte, 1) < 0)
			abort();
		look("a child behind the end", shared + 2 * page);
		look("a child's own page behind the end", own + 3 * page);
		_exit(0);
	}
	char byte;
	if (read(again[0], &byte, 1) < 0)
		abort();
	result("cut", ftruncate(fd, page + 100));
	if (write(cut[1], "", 1) < 0)
		abort();
	reap("child", pid);
	look("the first page", shared);
	look("the last byte", shared + page + 99);
	look("behind the last byte", shared + page + 100);
	look("the next page", shared + 2 * page);
	look("the last page", shared + 3 * page);
	look("an own page", own + page);
	look("an own page behind the end", own + 2 * page);
	look("the later part", last);
	result("a call's argument", write(again[1], shared + 2 * page, 1));
	result("long again", ftruncate(fd, PAGES * page));
	look("the next page", shared + 2 * page);
	look("an own page behind the end", own + 2 * page);
	look("an own page", own + page);
	shared[2 * page] = 'c';
	look("the later part", last);
	look("an own page", own + 2 * page);
	result("nothing", ftruncate(fd, 0));
	look("the first page", shared);
	look("an own page", own);
}
