/* echod [-u] port [count]: sends back what comes in on that many connections, or datagrams; count 1 unless given. */
#include "libc.h"

static void
serve(int s)
{
	char buffer[BUFSIZ];
	ssize_t n;

	while ((n = read(s, buffer, sizeof(buffer))) > 0)
		if (write(s, buffer, n) != n)
			err(1, "write");
	close(s);
}

static void
serve_datagram(int s)
{
	struct sockaddr_in from;
	unsigned length = sizeof(from);
	char buffer[BUFSIZ];
	ssize_t n = recvfrom(s, buffer, sizeof(buffer), 0, &from, &length);

	if (n < 0 || sendto(s, buffer, n, 0, &from, length) < 0)
		err(1, "socket");
}

int
main(int argc, char *argv[])
{
	bool udp = argc > 1 && strcmp(argv[1], "-u") == 0;
	struct sockaddr_in sin = { .sin_len = sizeof(sin), .sin_family = AF_INET };
	int i = 1 + udp, s, one;
	long count;

	if (argc - i < 1)
		errx(1, "usage: echod [-u] port [count]");
	sin.sin_port = htons(atol(argv[i]));
	count = argc - i > 1 ? atol(argv[i + 1]) : 1;
	if ((s = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0)) < 0 || bind(s, &sin, sizeof(sin)) != 0)
		err(1, "port %s", argv[i]);
	if (!udp && listen(s, 4) != 0)
		err(1, "listen");
	for (; count > 0; count--)
		if (udp)
			serve_datagram(s);
		else if ((one = accept(s, NULL, NULL)) < 0)
			err(1, "accept");
		else
			serve(one);
	return (0);
}
