/* Kinds of sockets, and the addresses that they can have and reach. */
#include "cases.h"

static void kinds(void)
{
    DO(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    DO(socket(AF_INET6, SOCK_DGRAM, IPPROTO_TCP));
    DO(socket(AF_INET, SOCK_SEQPACKET, 0));
    DO(socket(AF_INET, SOCK_RAW, 0));
    DO(socket(AF_INET, SOCK_STREAM, 250));
    DO(socket(77, SOCK_STREAM, 0));
    int pair[2];
    DO(socketpair(AF_INET, SOCK_STREAM, 0, pair));
}

static int tried(int family, int type, const void *a, socklen_t size)
{
    int fd = socket(family, type, 0), result = bind(fd, a, size) < 0 ? -errno : 0;
    close(fd);
    return result;
}

static void binding(void)
{
    struct sockaddr_in a = at("8.8.8.8", 0), b = at("127.1.2.3", 0), c = at("0.0.0.0", 0), d = at("127.0.0.1", 0);
    struct sockaddr_in6 e = at6("::1", 0), f = at6("::ffff:127.0.0.1", 0), g = at6("2001:db8::1", 0);
    printf("bind to others: %d %d\n", tried(AF_INET, SOCK_STREAM, &a, sizeof a), tried(AF_INET6, SOCK_STREAM, &g, sizeof g));
    printf("bind to own: %d %d\n", tried(AF_INET, SOCK_DGRAM, &b, sizeof b), tried(AF_INET6, SOCK_DGRAM, &e, sizeof e));
    printf("bind to mapped: %d\n", tried(AF_INET6, SOCK_STREAM, &f, sizeof f));
    printf("bind to wrong families: %d %d\n", tried(AF_INET, SOCK_STREAM, &e, sizeof e), tried(AF_INET6, SOCK_STREAM, &d, 28));
    printf("bind with wrong sizes: %d %d %d\n", tried(AF_INET, SOCK_STREAM, &d, 8), tried(AF_INET6, SOCK_STREAM, &e, 20), tried(AF_INET, SOCK_STREAM, &d, 200));
    a = c, a.sin_family = AF_UNSPEC, b.sin_family = AF_UNSPEC;
    printf("bind without a family: %d %d\n", tried(AF_INET, SOCK_STREAM, &a, sizeof a), tried(AF_INET, SOCK_STREAM, &b, sizeof b));
    int fd = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    name("not bound", fd, 0);
    DO(bind(fd, (void *) &d, sizeof d));
    DO(bind(fd, (void *) &d, sizeof d));
    name("bound", fd, 0);
    d = at("127.0.0.1", port_of(fd)), c = at("0.0.0.0", port_of(fd));
    DO(bind(other, (void *) &d, sizeof d));
    DO(bind(other, (void *) &c, sizeof c));
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    DO(bind(other, (void *) &d, sizeof d));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    DO(bind(other, (void *) &d, sizeof d));
    DO(listen(fd, 1));
    DO(listen(other, 1));
    close(other);
    other = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    DO(bind(other, (void *) &d, sizeof d));
    b = at("127.0.0.2", port_of(fd));
    DO(bind(other, (void *) &b, sizeof b));
    close(other);
    other = socket(AF_INET6, SOCK_STREAM, 0);
    e = at6("::", port_of(fd));
    DO(bind(other, (void *) &e, sizeof e));
    setsockopt(other, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    DO(bind(other, (void *) &e, sizeof e));
    DO(setsockopt(other, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on));
    close(fd), close(other);
    fd = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    d = at("127.0.0.1", 0);
    bind(fd, (void *) &d, sizeof d);
    d = at("127.0.0.1", port_of(fd));
    DO(bind(other, (void *) &d, sizeof d));
    setsockopt(other, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    DO(bind(other, (void *) &d, sizeof d));
    close(fd), close(other);
}

static void reaching(void)
{
    int fd = listening("0.0.0.0"), on = 1;
    struct sockaddr_in any = at("0.0.0.0", port_of(fd)), second = at("127.0.0.2", port_of(fd));
    int one = socket(AF_INET, SOCK_STREAM, 0), two = socket(AF_INET, SOCK_STREAM, 0);
    DO(connect(one, (void *) &any, sizeof any));
    name("connected to any, own", one, 0);
    name("connected to any, peer", one, 1);
    DO(connect(two, (void *) &second, sizeof second));
    name("connected to 127.0.0.2, own", two, 0);
    name("connected to 127.0.0.2, peer", two, 1);
    close(one), close(two), close(fd);

    int dual = socket(AF_INET6, SOCK_STREAM, 0);
    DO(listen(dual, 5));
    name("listens without bind", dual, 0);
    struct sockaddr_in v4 = at("127.0.0.1", port_of(dual));
    struct sockaddr_in6 v6 = at6("::1", port_of(dual)), mapped = at6("::ffff:127.0.0.1", port_of(dual));
    one = socket(AF_INET, SOCK_STREAM, 0), two = socket(AF_INET6, SOCK_STREAM, 0);
    int three = socket(AF_INET6, SOCK_STREAM, 0), only = socket(AF_INET6, SOCK_STREAM, 0);
    DO(connect(one, (void *) &v4, sizeof v4));
    DO(connect(two, (void *) &v6, sizeof v6));
    DO(connect(three, (void *) &mapped, sizeof mapped));
    for (int i = 0; i < 3; i++) {
        int served = accept(dual, 0, 0);
        name("served, own", served, 0);
        name("served, peer", served, 1);
        close(served);
    }
    name("by IPv4, peer", one, 1);
    name("by IPv6, own", two, 0);
    name("by mapped, own", three, 0);
    setsockopt(only, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    DO(connect(only, (void *) &mapped, sizeof mapped));
    DO(connect(only, (void *) &v4, sizeof v4));
    close(one), close(two), close(three), close(only), close(dual);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    DO(connect(fd, (void *) &v6, sizeof v6));
    DO(connect(fd, (void *) &v4, 8));
    DO(connect(fd, (void *) &v4, 1));
    name("peer of one that is not connected", fd, 1);
    close(fd);
}

void addresses(void)
{
    kinds();
    binding();
    reaching();
}
