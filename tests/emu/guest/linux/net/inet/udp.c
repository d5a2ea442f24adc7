/* Datagrams. */
#include "cases.h"

static int bound(const char *host)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in a = at(host, 0);
    bind(fd, (void *) &a, sizeof a);
    return fd;
}

static void datagrams(void)
{
    int one = bound("127.0.0.1"), two = socket(AF_INET, SOCK_DGRAM, 0), count;
    static char big[70000];
    struct sockaddr_in a = at("127.0.0.1", port_of(one)), from, away = at("8.8.8.8", 53), none = at("127.0.0.1", 0);
    socklen_t size = sizeof from;
    ready("new", two);
    DO(send(two, "x", 1, 0));
    DO(sendto(two, "x", 1, 0, (void *) &none, sizeof none));
    DO(sendto(two, "x", 1, 0, (void *) &away, 8));
    name("not bound", two, 0);
    DO(sendto(two, "hello", 5, 0, (void *) &a, sizeof a));
    name("bound by sending", two, 0);
    DO(sendto(two, "", 0, 0, (void *) &a, sizeof a));
    DO(sendto(two, big, 65507, 0, (void *) &a, sizeof a));
    DO(sendto(two, big, 65508, 0, (void *) &a, sizeof a));
    DO(sendto(two, big, 70000, 0, (void *) &a, sizeof a));
    ready("three datagrams", one);
    DO(ioctl(one, FIONREAD, &count));
    printf("to read: %d\n", count);
    DO(recvfrom(one, big, 2, MSG_PEEK | MSG_TRUNC, (void *) &from, &size));
    printf("from the other: %d, size %d\n", ntohs(from.sin_port) == port_of(two), (int) size);
    struct iovec part = { big, 2 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    DO(recvmsg(one, &message, 0));
    printf("flags %#x\n", message.msg_flags);
    DO(recv(one, big, 10, 0));
    DO(read(one, big, sizeof big));
    DO(recv(one, big, 10, MSG_DONTWAIT));
    DO(listen(one, 1));
    DO(accept(one, 0, 0));
    DO(shutdown(one, SHUT_RD));
    DO(recv(one, big, 10, 0));
    struct mmsghdr many[3] = {};
    for (int i = 0; i < 3; i++)
        many[i].msg_hdr = (struct msghdr) { .msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &part, .msg_iovlen = 1 };
    DO(sendmmsg(two, many, 3, 0));
    for (int i = 0; i < 3; i++)
        many[i].msg_hdr.msg_name = &from, many[i].msg_hdr.msg_namelen = sizeof from;
    DO(recvmmsg(one, many, 3, MSG_WAITFORONE, 0));
    printf("size %d of %u\n", (int) many[2].msg_hdr.msg_namelen, many[2].msg_len);
    close(one), close(two);
}

static void connected_ones(void)
{
    int one = bound("127.0.0.1"), two = socket(AF_INET, SOCK_DGRAM, 0), three = bound("127.0.0.1");
    struct sockaddr_in a = at("127.0.0.1", port_of(one)), b;
    char c[8];
    DO(connect(two, (void *) &a, sizeof a));
    name("connected, own", two, 0);
    name("connected, peer", two, 1);
    DO(send(two, "x", 1, 0));
    b = at("127.0.0.1", port_of(two));
    DO(sendto(three, "no", 2, 0, (void *) &b, sizeof b));
    DO(sendto(one, "yes", 3, 0, (void *) &b, sizeof b));
    DO(recv(two, c, 8, MSG_DONTWAIT));
    DO(recv(two, c, 8, MSG_DONTWAIT));
    close(one);
    DO(send(two, "x", 1, 0));
    ready("refused", two);
    DO(send(two, "x", 1, 0));
    DO(send(two, "x", 1, 0));
    DO(recv(two, c, 8, MSG_DONTWAIT));
    DO(recv(two, c, 8, MSG_DONTWAIT));
    DO(send(two, "x", 1, 0));
    DO(option(two, SOL_SOCKET, SO_ERROR));
    DO(sendto(three, "x", 1, 0, (void *) &a, sizeof a));
    DO(recv(three, c, 8, MSG_DONTWAIT));
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    DO(connect(two, &none, sizeof none));
    name("disconnected, own", two, 0);
    name("disconnected, peer", two, 1);
    DO(shutdown(two, SHUT_WR));
    DO(connect(two, (void *) &b, sizeof b));
    DO(shutdown(two, SHUT_WR));
    DO(send(two, "x", 1, 0));
    ready("shut down", two);
    close(two), close(three);
}

static void families(void)
{
    int one = socket(AF_INET6, SOCK_DGRAM, 0), two = bound("127.0.0.1");
    struct sockaddr_in6 any = at6("::", 0), mapped = at6("::ffff:127.0.0.1", port_of(two)), from;
    socklen_t size = sizeof from;
    char c[8];
    bind(one, (void *) &any, sizeof any);
    struct sockaddr_in a = at("127.0.0.1", port_of(one)), back = at("127.0.0.1", port_of(two));
    DO(sendto(two, "x", 1, 0, (void *) &a, sizeof a));
    DO(sendto(two, "x", 1, 0, (void *) &mapped, sizeof mapped));
    DO(recvfrom(one, c, 8, 0, (void *) &from, &size));
    printf("mapped: %d, size %d\n", IN6_IS_ADDR_V4MAPPED(&from.sin6_addr), (int) size);
    DO(sendto(one, "x", 1, 0, (void *) &mapped, sizeof mapped));
    DO(sendto(one, "x", 1, 0, (void *) &back, sizeof back));
    DO(recv(two, c, 8, 0));
    DO(recv(two, c, 8, 0));
    close(one), close(two);
}

void udp(void)
{
    datagrams();
    connected_ones();
    families();
}
