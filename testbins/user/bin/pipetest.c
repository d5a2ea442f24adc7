/* pipetest [kilobytes]: so much (16) through a pipe to a child, and the sum back through another; then a pipe without a reader */
#include "libc.h"

static uint32_t
drain(int fd)
{
	unsigned char buffer[700]; /* not a divisor of anything */
	uint32_t sum = 0;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + buffer[i];
	return (sum);
}

int
main(int argc, char *argv[])
{
	long kilobytes = argc > 1 ? atol(argv[1]) : 16;
	uint32_t sum = 0, theirs = 0;
	unsigned char block[1024];
	int to[2], from[2], status;

	if (pipe(to) != 0 || pipe(from) != 0)
		err(1, "pipe");
	if (fork() == 0) {
		close(to[1]);
		sum = drain(to[0]);
		write(from[1], &sum, sizeof(sum));
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	for (long i = 0; i < kilobytes; i++) {
		for (size_t j = 0; j < sizeof(block); j++) {
			block[j] = i + j;
			sum = sum * 31 + block[j];
		}
		if (write(to[1], block, sizeof(block)) != sizeof(block))
			err(1, "write");
	}
	close(to[1]);
	if (read(from[0], &theirs, sizeof(theirs)) != sizeof(theirs) || wait(&status) < 0)
		err(1, "no answer");
	if (theirs != sum)
		errx(1, "%x came, %x was sent", theirs, sum);
	if (pipe(to) != 0)
		err(1, "pipe");
	if (fork() == 0) {
		close(to[0]);
		write(to[1], block, 1);
		_exit(0); /* SIGPIPE came first */
	}
	close(to[0]);
	close(to[1]);
	wait(&status);
	printf("pipetest: %ld KB, sum %08x, the other writer died of signal %d\n", kilobytes, sum, WTERMSIG(status));
	return (0);
}
