/* Data moved between files in the kernel: splice, tee, vmsplice, sendfile, copy_file_range. */
#define _GNU_SOURCE
#include "calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

CASE(splice)
{
	int one[2], two[2];
	char buffer[64];
	off64_t offset = 2;
	int file = memfd_create("file", 0);
	result("write", write(file, "0123456789", 10));
	result("pipes", pipe2(one, O_NONBLOCK) + pipe2(two, O_NONBLOCK));
	result("file to pipe", splice(file, &offset, one[1], NULL, 5, 0));
	result("offset", (long)offset);
	result("tee", tee(one[0], two[1], 3, 0));
	result("pipe to pipe", splice(one[0], NULL, two[1], NULL, 100, 0));
	long got = read(two[0], buffer, 64);
	bytes("read", buffer, got);
	result("an empty pipe", splice(one[0], NULL, two[1], NULL, 100, 0));
	result("tee an empty pipe", tee(one[0], two[1], 100, SPLICE_F_NONBLOCK));
	result("to itself", splice(one[0], NULL, one[1], NULL, 1, 0));
	result("no pipe", splice(file, NULL, file, NULL, 1, 0));
	result("an offset of a pipe", splice(one[0], &offset, two[1], NULL, 1, 0));
	result("flags", splice(one[0], NULL, two[1], NULL, 1, 0x100));
	struct iovec parts[] = { { "abc", 3 }, { "defg", 4 } };
	result("vmsplice", vmsplice(one[1], parts, 2, 0));
	offset = 20;
	result("pipe to file", splice(one[0], NULL, file, &offset, 5, 0));
	result("offset", (long)offset);
	result("size", lseek(file, 0, SEEK_END));
	got = pread(file, buffer, 64, 18);
	bytes("the file", buffer, got);
	close(one[1]);
	got = read(one[0], buffer, 64);
	bytes("left in the pipe", buffer, got);
	result("nobody writes", splice(one[0], NULL, two[1], NULL, 1, 0));
}

CASE(sendfile)
{
	int ends[2];
	char buffer[64];
	off_t offset = 3;
	int file = memfd_create("file", 0), other = memfd_create("other", MFD_CLOEXEC);
	result("write", write(file, "0123456789", 10));
	result("pipe", pipe2(ends, O_NONBLOCK));
	result("sendfile", sendfile(ends[1], file, &offset, 4));
	result("offset", offset);
	result("position", lseek(file, 0, SEEK_CUR));
	long got = read(ends[0], buffer, 64);
	bytes("read", buffer, got);
	lseek(file, 8, SEEK_SET);
	result("to the end", sendfile(other, file, NULL, 100));
	result("position", lseek(file, 0, SEEK_CUR));
	result("at the end", sendfile(other, file, NULL, 100));
	off64_t from = 1, to = 5;
	result("copy_file_range", copy_file_range(file, &from, other, &to, 3, 0));
	say("offsets %ld %ld", (long)from, (long)to);
	got = pread(other, buffer, 64, 0);
	bytes("the file", buffer, got);
	result("flags", copy_file_range(file, &from, other, &to, 3, 1));
	result("a pipe", copy_file_range(ends[0], NULL, other, NULL, 3, 0));
	from = 0;
	to = 2;
	result("overlap", copy_file_range(file, &from, file, &to, 5, 0));
	result("not to be written", sendfile(ends[0], file, NULL, 1));
}
