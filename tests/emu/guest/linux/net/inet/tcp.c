/* Connections of TCP: making them, sending, and readiness. */
#include "cases.h"

static void refused(void)
{
    int fd = listening("127.0.0.1");
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    ready("new", fd);
    DO(connect(fd, (void *) &a, sizeof a));
    ready("refused", fd);
    name("refused, own", fd, 0);
    DO(option(fd, SOL_SOCKET, SO_ERROR));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    DO(connect(fd, (void *) &a, sizeof a));
    ready("refused later", fd);
    DO(option(fd, SOL_SOCKET, SO_ERROR));
    DO(option(fd, SOL_SOCKET, SO_ERROR));
    DO(connect(fd, (void *) &a, sizeof a));
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    DO(connect(fd, (void *) &a, sizeof a));
    DO(send(fd, "x", 1, 0));
    DO(send(fd, "x", 1, 0));
    DO(recv(fd, &a, 1, 0));
    close(fd);
}

static void later(void)
{
    int fd = listening("127.0.0.1"), one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    ready("listening", fd);
    DO(accept4(fd, 0, 0, SOCK_NONBLOCK | 1));
    DO(connect(one, (void *) &a, sizeof a));
    ready("connected later", one);
    ready("to accept", fd);
    DO(connect(one, (void *) &a, sizeof a));
    DO(connect(one, (void *) &a, sizeof a));
    DO(option(one, SOL_SOCKET, SO_ERROR));
    DO(connect(fd, (void *) &a, sizeof a));
    DO(option(fd, SOL_SOCKET, SO_ACCEPTCONN));
    DO(listen(one, 1));
    int served = accept4(fd, 0, 0, SOCK_NONBLOCK);
    DO(fcntl(served, F_GETFL) & O_NONBLOCK);
    DO(recv(served, &a, 1, 0));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    DO(accept(fd, 0, 0));
    DO(accept(one, 0, 0));
    DO(send(fd, "x", 1, MSG_NOSIGNAL));
    DO(recv(fd, &a, 1, 0));
    DO(shutdown(fd, SHUT_RD));
    DO(accept(fd, 0, 0));
    ready("listens no more", fd);
    name("listens no more", fd, 0);
    close(fd), close(one), close(served);
}

static void queue(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), fds[4];
    DO(listen(fd, 1));
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    for (int i = 0; i < 4; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(fds[i], (void *) &a, sizeof a);
        ready("in the queue", fds[i]);
    }
    name("waiting", fds[3], 0);
    DO(connect(fds[3], (void *) &a, sizeof a));
    DO(send(fds[3], "x", 1, 0));
    DO(recv(fds[3], &a, 1, 0));
    name("waiting, peer", fds[3], 1);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    close(fd);
}

/* Connections that have to wait: one server accepts another connection, one ends. */
static void late(void)
{
    int servers[2], fds[2][2];
    char c[8];
    for (int i = 0; i < 2; i++) {
        servers[i] = socket(AF_INET, SOCK_STREAM, 0);
        listen(servers[i], 0);
        struct sockaddr_in a = at("127.0.0.1", port_of(servers[i]));
        for (int j = 0; j < 2; j++) {
            fds[i][j] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            connect(fds[i][j], (void *) &a, sizeof a);
            ready(j ? "has to wait" : "connected", fds[i][j]);
        }
    }
    close(accept(servers[0], 0, 0));
    close(servers[1]);
    for (int i = 0; i < 2; i++)
        poll(&(struct pollfd) { fds[i][1], POLLOUT }, 1, 5000);
    ready("connected late", fds[0][1]);
    ready("refused late", fds[1][1]);
    DO(send(fds[0][1], "late", 4, 0));
    int served = accept(servers[0], 0, 0);
    DO(recv(served, c, 8, 0));
    DO(option(fds[1][1], SOL_SOCKET, SO_ERROR));
    close(served), close(servers[0]);
    for (int i = 0; i < 4; i++)
        close(fds[i / 2][i % 2]);
}

static void data(void)
{
    int one, two, count;
    char buffer[64] = "";
    connected(&one, &two);
    ready("connected", one);
    DO(send(one, "hello", 5, 0));
    DO(write(one, " world", 6));
    ready("data", two);
    DO(ioctl(two, FIONREAD, &count));
    printf("to read: %d\n", count);
    DO(recv(two, buffer, 3, MSG_PEEK));
    DO(recv(two, buffer, 64, MSG_PEEK | MSG_DONTWAIT));
    DO(recv(two, buffer, 4, MSG_WAITALL));
    printf("got %.4s\n", buffer);
    struct iovec parts[2] = { { buffer, 2 }, { buffer + 2, 62 } };
    DO(readv(two, parts, 2));
    printf("got %.7s\n", buffer);
    DO(recv(two, buffer, 1, MSG_DONTWAIT));
    parts[1].iov_len = 3;
    DO(writev(two, parts, 2));
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    memset(&from, 7, sizeof from);
    DO(recvfrom(one, buffer, 64, 0, (void *) &from, &size));
    printf("size of the sender's address: %d\n", (int) size);
    struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = parts, .msg_iovlen = 2 };
    DO(sendmsg(two, &(struct msghdr) { .msg_iov = parts, .msg_iovlen = 2 }, 0));
    DO(recvmsg(one, &message, 0));
    printf("size %d flags %#x\n", (int) message.msg_namelen, message.msg_flags);
    DO(send(one, "", 0, 0));
    ready("nothing", two);
    char file[] = "/tmp/inetXXXXXX";
    int source = mkstemp(file), pipes[2];
    unlink(file);
    DO(write(source, "a file's text", 13));
    off_t offset = 2;
    DO(sendfile(one, source, &offset, 100));
    DO(pipe(pipes) ? -1 : 0);
    DO(splice(two, 0, pipes[1], 0, 100, 0));
    DO(splice(pipes[0], 0, two, 0, 4, 0));
    DO(read(one, buffer, 64));
    printf("got %.4s\n", buffer);
    DO(lseek(one, 0, SEEK_CUR));
    close(source), close(pipes[0]), close(pipes[1]), close(one), close(two);
}

static void room(void)
{
    int one, two, count = 1;
    static char much[1 << 20];
    connected(&one, &two);
    fcntl(one, F_SETFL, O_NONBLOCK);
    long sent = 0, got = 0, n;
    while ((n = send(one, much, sizeof much, 0)) > 0)
        sent += n;
    printf("no room: error %d, more than 64 KiB: %d\n", errno, sent > 65536);
    ready("no room", one);
    DO(ioctl(one, TIOCOUTQ, &count));
    printf("unsent: %d\n", count > 0);
    while (got < sent && (n = recv(two, much, sizeof much, 0)) > 0)
        got += n;
    printf("all arrived: %d\n", got == sent);
    poll(&(struct pollfd) { one, POLLOUT }, 1, 1000);
    ready("room", one);
    close(one), close(two);
}

static void addressed(void)
{
    int one, two, alone = socket(AF_INET, SOCK_STREAM, 0);
    char buffer[8] = "before";
    struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = 9 };
    connected(&one, &two);
    DO(sendto(one, "hello", 5, 0, (struct sockaddr *)&nobody, sizeof nobody));
    DO(sendto(alone, "hello", 5, MSG_NOSIGNAL, (struct sockaddr *)&nobody, sizeof nobody));
    DO(recv(two, buffer, 3, MSG_TRUNC));
    printf("got %.6s\n", buffer);
    DO(recv(two, buffer, 8, 0));
    printf("got %.2s\n", buffer);
    close(one), close(two), close(alone);
}

void tcp(void)
{
    addressed();
    refused();
    later();
    queue();
    late();
    data();
    room();
}
