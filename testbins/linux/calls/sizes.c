/* What limits the size and the content of files: seals and limits; and settings in short and long structures. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif
#define NOEXEC_SEAL 8u

static int
file(unsigned flags)
{
	int fd = (int)syscall(SYS_memfd_create, "file", flags);
	if (fd < 0 || ftruncate(fd, 8192))
		abort();
	return fd;
}

static void
unmap(const char *what, void *address)
{
	worked(what, address == MAP_FAILED ? -1 : 0);
	if (address != MAP_FAILED)
		munmap(address, 4096);
}

CASE(sealed_file)
{
	int fd = file(0);
	result("sealed from the start", fcntl(fd, F_GET_SEALS));
	result("no seal is added", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
	close(fd);
	fd = file(NOEXEC_SEAL);
	result("not to be executed", fcntl(fd, F_GET_SEALS));
	result("mode", fchmod(fd, 0777));
	result("mode that leaves that", fchmod(fd, 0640));
	close(fd);
	fd = file(MFD_ALLOW_SEALING);
	result("none", fcntl(fd, F_GET_SEALS));
	result("unknown", fcntl(fd, F_ADD_SEALS, 0x40));
	result("size", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
	result("shorter", ftruncate(fd, 10));
	result("longer", ftruncate(fd, 10000));
	result("the same", ftruncate(fd, 8192));
	result("write", pwrite(fd, "x", 1, 100));
	result("write at the end", pwrite(fd, "x", 1, 8192));
	result("write over the end", pwrite(fd, "xx", 2, 8191));
	result("allocate more", fallocate(fd, 0, 0, 10000));
	result("keep size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10000));
	result("punch", fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096));
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	result("no writing, while it is mapped", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	result("no writing in future", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	shared[0] = 'y';
	result("write", pwrite(fd, "x", 1, 1));
	munmap(shared, 4096);
	result("no writing", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	result("all of them", fcntl(fd, F_GET_SEALS));
	result("punch", fallocate(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096));
	unmap("map to write", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	unmap("map a copy", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
	shared = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	worked("map to read", shared == MAP_FAILED ? -1 : 0);
	result("make that writable", mprotect(shared, 4096, PROT_READ | PROT_WRITE));
	say("%c%d", shared[0], shared[1]);
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int reader = open(path, O_RDONLY);
	result("by a reader", fcntl(reader, F_ADD_SEALS, F_SEAL_SEAL));
	result("the last one", fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
	result("one more", fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC));
	int ends[2];
	if (pipe(ends))
		abort();
	result("of a pipe", fcntl(ends[1], F_GET_SEALS));
	result("of a pipe", fcntl(ends[1], F_ADD_SEALS, F_SEAL_GROW));
	fd = file(MFD_ALLOW_SEALING);
	result("of a program", fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC));
	result("all of them", fcntl(fd, F_GET_SEALS));
}

static volatile int signals;

static void
count(int number)
{
	(void)number;
	signals++;
}

CASE(file_limit)
{
	int fd = file(0);
	struct rlimit limit = { 16384, RLIM_INFINITY };
	on(SIGXFSZ, count);
	if (setrlimit(RLIMIT_FSIZE, &limit))
		abort();
	result("allocate", fallocate(fd, 0, 0, 16384));
	result("allocate more", fallocate(fd, 0, 4096, 16384));
	result("keep size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 4096, 16384));
	result("truncate", ftruncate(fd, 16385));
	result("write", pwrite(fd, "ab", 2, 16383));
	result("write behind", pwrite(fd, "ab", 2, 16384));
	say("%d signals", signals);
}

CASE(short_settings)
{
	/* struct termio, which glibc and the kernel's headers declare in each other's way. */
	struct { unsigned short flags[4]; unsigned char line, characters[8], rest[5]; } some = { 0 };
	struct termios all, locks;
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlocked = 0;
	ioctl(master, TIOCSPTLCK, &unlocked);
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	result("get", ioctl(slave, TCGETA, &some));
	say("%x %x %x %x %d", some.flags[0], some.flags[1], some.flags[2], some.flags[3], some.line);
	bytes("characters", some.characters, 9);
	some.flags[0] = 0;
	some.flags[3] &= ~(unsigned)ECHO;
	some.characters[0] = 7;
	result("set", ioctl(slave, TCSETA, &some));
	result("set, drained", ioctl(slave, TCSETAW, &some));
	result("set, flushed", ioctl(slave, TCSETAF, &some));
	result("get all", ioctl(slave, TCGETS, &all));
	say("%x %x %x %x", all.c_iflag, all.c_oflag, all.c_cflag, all.c_lflag);
	bytes("characters", all.c_cc, 19);
	memset(&locks, 0, sizeof locks);
	result("locks", ioctl(slave, TIOCGLCKTRMIOS, &locks));
	locks.c_lflag = ECHO;
	locks.c_cc[1] = 1;
	result("lock", ioctl(slave, TIOCSLCKTRMIOS, &locks));
	all.c_lflag |= ECHO | NOFLSH;
	all.c_cc[0] = all.c_cc[1] = 9;
	result("set all", ioctl(slave, TCSETS, &all));
	result("get all", ioctl(slave, TCGETS, &all));
	say("%x %d %d", all.c_lflag, all.c_cc[0], all.c_cc[1]);
	result("nowhere", ioctl(slave, TCGETA, nowhere));
	result("from nowhere", ioctl(slave, TCSETA, nowhere));
	result("of a file", ioctl(file(0), TCGETA, &some));
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t times[3];
	uint32_t least, most;
	uint64_t more;
};

CASE(scheduling)
{
	struct attributes set = { .size = 48, .policy = 3, .nice = 5 }, got = { 0 };
	struct sched_param none = { 0 };
	result("batch", syscall(SYS_sched_setattr, 0, &set, 0));
	set.policy = 0, set.nice = 7, set.flags = 8;
	result("keep the policy", syscall(SYS_sched_setattr, 0, &set, 0));
	result("get", syscall(SYS_sched_getattr, 0, &got, 48, 0));
	say("policy %u nice %d", got.policy, got.nice);
	set.nice = 9, set.flags = 16;
	result("keep the parameters", syscall(SYS_sched_setattr, 0, &set, 0));
	result("get", syscall(SYS_sched_getattr, 0, &got, 48, 0));
	say("policy %u nice %d", got.policy, got.nice);
	set.flags = 1;
	result("reset in children", syscall(SYS_sched_setattr, 0, &set, 0));
	result("policy", sched_getscheduler(0));
	set.flags = 128;
	result("unknown flag", syscall(SYS_sched_setattr, 0, &set, 0));
	set.flags = 0, set.policy = 77;
	result("unknown policy", syscall(SYS_sched_setattr, 0, &set, 0));
	set.policy = 6;
	result("a deadline without times", syscall(SYS_sched_setattr, 0, &set, 0));
	result("a deadline without a place for times", sched_setscheduler(0, 6, &none));
	set = (struct attributes){ .size = sizeof set, .more = 1 };
	result("larger than known", syscall(SYS_sched_setattr, 0, &set, 0));
	set.size = sizeof set, set.more = 0;
	result("larger, and zeros", syscall(SYS_sched_setattr, 0, &set, 0));
	set.size = 40;
	result("too small", syscall(SYS_sched_setattr, 0, &set, 0));
}
