/*
 * nc [-u] [-l] [address] port: copies standard input to a connection, and what comes back to standard output. -l: waits
 * for a connection instead of making one. -u: datagrams, one for each line, with one answer each; -l: one of them.
 */
#include "libc.h"

/* a.b.c.d, in network order. */
static uint32_t
inet_addr(const char *text)
{
	uint32_t address = 0;

	for (int i = 0; i < 4; i++) {
		address |= (uint32_t)(atol(text) & 0xff) << 8 * i;
		if ((text = strchr(text, '.')) == NULL)
			break;
		text++;
	}
	return (address);
}

static void
copy(int from, int to)
{
	char buffer[BUFSIZ];
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, n) != n)
			err(1, "write");
	if (n < 0)
		err(1, "read");
}

static void
datagrams(int s)
{
	static struct reader in;
	char line[BUFSIZ];
	ssize_t n;

	while (readline(&in, line, sizeof(line)) != NULL) {
		if (write(s, line, strlen(line)) < 0 || (n = read(s, line, sizeof(line))) < 0)
			err(1, "socket");
		printf("%.*s\n", (int)n, line);
	}
}

int
main(int argc, char *argv[])
{
	struct sockaddr_in sin = { .sin_len = sizeof(sin), .sin_family = AF_INET };
	bool udp = false, listening = false;
	int i = 1, s;

	for (; i < argc && argv[i][0] == '-'; i++) {
		udp |= strchr(argv[i], 'u') != NULL;
		listening |= strchr(argv[i], 'l') != NULL;
	}
	if (argc - i < 1 || argc - i > 2)
		errx(1, "usage: nc [-u] [-l] [address] port");
	sin.sin_addr.s_addr = argc - i == 2 ? inet_addr(argv[i++]) : listening ? INADDR_ANY : htonl(INADDR_LOOPBACK);
	sin.sin_port = htons(atol(argv[i]));
	if ((s = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, 0)) < 0)
		err(1, "socket");
	if (!listening) {
		if (connect(s, &sin, sizeof(sin)) != 0)
			err(1, "connect to port %s", argv[i]);
		if (udp) {
			datagrams(s);
			return (0);
		}
		copy(0, s);
		shutdown(s, SHUT_WR);
		copy(s, 1);
		return (0);
	}
	if (bind(s, &sin, sizeof(sin)) != 0)
		err(1, "bind to port %s", argv[i]);
	if (!udp && (listen(s, 1) != 0 || (s = accept(s, NULL, NULL)) < 0))
		err(1, "accept");
	if (!udp)
		copy(s, 1);
	else {
		char buffer[BUFSIZ];
		ssize_t n = read(s, buffer, sizeof(buffer));

		if (n < 0)
			err(1, "read");
		printf("%.*s\n", (int)n, buffer);
	}
	return (0);
}
