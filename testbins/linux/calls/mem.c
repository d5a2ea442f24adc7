/* /proc/PID/mem: its offsets are addresses, of 32 bits where a word has them. */
#define _FILE_OFFSET_BITS 64
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calls.h"

static volatile int word = 7;

CASE(process_memory)
{
	int value = 0, fd = open("/proc/self/mem", O_RDWR);
	uintptr_t at = (uintptr_t)&word;
	worked("open", fd);
	result("read a word", pread(fd, &value, 4, at));
	say("%d", value);
	value = 42;
	result("write it", pwrite(fd, &value, 4, at));
	say("%d", word);
	result("read where nothing is", pread(fd, &value, 4, 16));
	result("write where nothing is", pwrite(fd, &value, 4, 16));
	result("read nothing there", pread(fd, &value, 0, 16));

	char *pages = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	result("write what can only be read", pwrite(fd, "hello", 5, (uintptr_t)pages + 4094));
	bytes("it is", pages + 4094, 5);
	munmap(pages + 4096, 4096);
	char buffer[10];
	result("read up to the end of a mapping", pread(fd, buffer, sizeof buffer, (uintptr_t)pages + 4090));

	result("move", lseek(fd, at, SEEK_SET) == (off_t)at ? 0 : -1);
	result("read there", read(fd, &value, 4));
	say("%d, and it has moved by %d", value, (int)(lseek(fd, 0, SEEK_CUR) - at));
	result("move from the end", lseek(fd, 0, SEEK_END));

	int ends[2];
	result("pipe", pipe(ends));
	pid_t pid = fork();
	if (!pid) {
		close(ends[1]);
		read(ends[0], buffer, 1);
		_exit(word);
	}
	char name[40];
	snprintf(name, sizeof name, "/proc/%d/mem", pid);
	int other = open(name, O_RDWR);
	worked("open the child's", other);
	value = 9;
	result("write the child's word", pwrite(other, &value, 4, at));
	close(ends[1]);
	close(ends[0]);
	reap("the child", pid);
	say("ours is %d", word);
	result("read of a process that is gone", pread(other, &value, 4, at));
	result("write to it", pwrite(other, &value, 4, at));
}
