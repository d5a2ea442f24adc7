/* How connections end. */
#include "cases.h"

static void state(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
    printf("state %d\n", info.tcpi_state);
}

static void half(void)
{
    int one, two;
    char c[8];
    connected(&one, &two);
    state(one);
    send(one, "last", 4, 0);
    DO(shutdown(one, SHUT_WR));
    state(two);
    ready("sends no more", one);
    ready("has heard it", two);
    DO(send(one, "x", 1, 0));
    DO(recv(two, c, 8, 0));
    DO(recv(two, c, 8, 0));
    DO(send(two, "answer", 6, 0));
    DO(recv(one, c, 8, 0));
    DO(shutdown(two, SHUT_RDWR));
    ready("both", one);
    ready("both", two);
    name("both, peer", one, 1);
    DO(recv(one, c, 8, 0));
    DO(send(two, "x", 1, 0));
    DO(shutdown(one, SHUT_RD));
    close(one), close(two);

    connected(&one, &two);
    DO(shutdown(one, SHUT_RD));
    ready("receives no more", one);
    DO(recv(one, c, 8, 0));
    DO(send(two, "x", 1, 0));
    DO(recv(one, c, 8, 0));
    DO(recv(one, c, 8, MSG_DONTWAIT));
    close(one), close(two);

    connected(&one, &two);
    DO(shutdown(one, SHUT_RDWR));
    ready("shut down", one);
    DO(send(two, "x", 1, 0));
    ready("sent to one that is shut down", two);
    DO(send(two, "x", 1, 0));
    DO(option(one, SOL_SOCKET, SO_ERROR));
    close(one), close(two);
    one = socket(AF_INET, SOCK_STREAM, 0);
    DO(shutdown(one, SHUT_WR));
    DO(send(one, "x", 1, 0));
    DO(recv(one, c, 1, 0));
    close(one);
}

static void closed(void)
{
    int one, two;
    char c[8];
    connected(&one, &two);
    send(one, "data", 4, 0);
    close(one);
    ready("closed", two);
    state(two);
    DO(recv(two, c, 8, 0));
    DO(recv(two, c, 8, 0));
    name("closed, peer", two, 1);
    DO(send(two, "x", 1, 0));
    ready("reset", two);
    state(two);
    name("reset, peer", two, 1);
    DO(recv(two, c, 8, 0));
    DO(send(two, "x", 1, 0));
    DO(send(two, "x", 1, 0));
    DO(recv(two, c, 8, 0));
    close(two);

    connected(&one, &two);
    send(two, "unread", 6, 0);
    send(one, "before", 6, 0);
    close(one);
    ready("closed with unread data", two);
    DO(recv(two, c, 8, 0));
    DO(recv(two, c, 8, 0));
    DO(recv(two, c, 8, 0));
    DO(send(two, "x", 1, 0));
    close(two);

    connected(&one, &two);
    struct linger now = { 1, 0 };
    setsockopt(one, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(one);
    ready("closed without lingering", two);
    DO(option(two, SOL_SOCKET, SO_ERROR));
    DO(recv(two, c, 8, 0));
    DO(send(two, "x", 1, 0));
    close(two);

    connected(&one, &two);
    shutdown(two, SHUT_WR);
    setsockopt(one, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(one);
    ready("reset after its end", two);
    DO(recv(two, c, 8, 0));
    close(two);

    connected(&one, &two);
    struct sockaddr none = { .sa_family = AF_UNSPEC };
    DO(connect(one, &none, sizeof none));
    ready("disconnected", one);
    ready("disconnected, other end", two);
    name("disconnected", one, 0);
    DO(recv(two, c, 8, 0));
    close(one), close(two);
}

static void unaccepted(void)
{
    int fd = listening("127.0.0.1"), one = socket(AF_INET, SOCK_STREAM, 0), two = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    char c[8];
    DO(connect(one, (void *) &a, sizeof a));
    DO(connect(two, (void *) &a, sizeof a));
    DO(send(one, "early", 5, 0));
    close(one);
    int served = accept(fd, 0, 0);
    DO(recv(served, c, 8, 0));
    DO(recv(served, c, 8, 0));
    close(fd);
    ready("never accepted", two);
    DO(recv(two, c, 8, 0));
    DO(send(two, "x", 1, 0));
    close(two), close(served);
}

void endings(void)
{
    half();
    closed();
    unaccepted();
}
