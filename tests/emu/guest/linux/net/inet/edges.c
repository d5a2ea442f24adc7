/* What epoll tells with edges. */
#include "cases.h"

static int watch(int fd, unsigned events)
{
    int epoll = epoll_create1(0);
    struct epoll_event event = { .events = events | EPOLLET };
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    return epoll;
}

static void told(const char *what, int epoll)
{
    struct epoll_event event = { 0 };
    int count = epoll_wait(epoll, &event, 1, 0);
    printf("%s: %d %#x\n", what, count, count > 0 ? event.events : 0);
}

static void connection(void)
{
    int one, two;
    char c[8];
    connected(&one, &two);
    int epoll = watch(two, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    told("connected", epoll);
    told("again", epoll);
    send(one, "x", 1, 0);
    told("data", epoll);
    told("data again", epoll);
    send(one, "y", 1, 0);
    told("more data", epoll);
    recv(two, c, 1, 0);
    told("some read", epoll);
    recv(two, c, 1, 0);
    send(two, "z", 1, 0);
    recv(one, c, 1, 0);
    told("sent", epoll);
    shutdown(one, SHUT_WR);
    told("the other end sends no more", epoll);
    close(one);
    send(two, "z", 1, 0);
    told("reset", epoll);
    told("reset again", epoll);
    close(two), close(epoll);
}

static void connecting(void)
{
    int fd = listening("127.0.0.1"), one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    int epoll = watch(one, EPOLLIN | EPOLLOUT | EPOLLRDHUP), listens = watch(fd, EPOLLIN);
    told("new", epoll);
    told("nobody connects", listens);
    connect(one, (void *) &a, sizeof a);
    told("connects", epoll);
    told("again", epoll);
    told("to accept", listens);
    told("again", listens);
    close(one), close(fd), close(epoll), close(listens);
}

static void room(void)
{
    int one, two;
    static char much[1 << 20];
    connected(&one, &two);
    fcntl(one, F_SETFL, O_NONBLOCK), fcntl(two, F_SETFL, O_NONBLOCK);
    int epoll = watch(one, EPOLLOUT);
    told("room", epoll);
    while (send(one, much, sizeof much, 0) > 0)
        ;
    told("no room", epoll);
    for (int quiet = 0; quiet < 3; quiet++) {
        while (recv(two, much, sizeof much, 0) > 0)
            quiet = 0;
        usleep(10000);
    }
    told("room again", epoll);
    told("told once", epoll);
    close(one), close(two), close(epoll);
}

void edges(void)
{
    connection();
    connecting();
    room();
}
