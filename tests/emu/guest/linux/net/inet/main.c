/* The cases, and what they print. */
#include "cases.h"

long did(const char *what, long result)
{
    if (result < 0)
        printf("%s: error %d\n", what, errno);
    else
        printf("%s: %ld\n", what, result);
    return result;
}

struct sockaddr_in at(const char *host, int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

struct sockaddr_in6 at6(const char *host, int port)
{
    struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    inet_pton(AF_INET6, host, &a.sin6_addr);
    return a;
}

static void print(const char *what, struct sockaddr_storage *a, socklen_t size)
{
    char text[64] = "";
    int port = ntohs(((struct sockaddr_in *) a)->sin_port);
    if (a->ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *) a)->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *) a)->sin6_addr, text, sizeof text);
    printf("%s: family %d size %d %s %s\n", what, a->ss_family, (int) size, text, port ? "with a port" : "without a port");
}

int port_of(int fd)
{
    struct sockaddr_in a;
    socklen_t size = sizeof a;
    getsockname(fd, (void *) &a, &size);
    return ntohs(a.sin_port);
}

void name(const char *what, int fd, int peer)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    if ((peer ? getpeername : getsockname)(fd, (void *) &a, &size) < 0)
        printf("%s: error %d\n", what, errno);
    else
        print(what, &a, size);
}

void ready(const char *what, int fd)
{
    struct pollfd p = { fd, POLLIN | POLLOUT | POLLRDHUP | POLLPRI | POLLRDNORM | POLLWRNORM | POLLWRBAND };
    poll(&p, 1, 0);
    printf("%s: ready for %#x\n", what, p.revents);
}

int option(int fd, int level, int number)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, number, &value, &size) < 0 ? -1 : value;
}

int listening(const char *host)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = at(host, 0);
    bind(fd, (void *) &a, sizeof a);
    listen(fd, 5);
    return fd;
}

void connected(int *client, int *server)
{
    int fd = listening("127.0.0.1");
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    *client = socket(AF_INET, SOCK_STREAM, 0);
    connect(*client, (void *) &a, sizeof a);
    *server = accept(fd, 0, 0);
    close(fd);
}

int main(void)
{
    setvbuf(stdout, 0, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    addresses();
    tcp();
    endings();
    udp();
    options();
    edges();
    return 0;
}
