/* What the cases share: each call is printed with its result and the number of its error. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define DO(call) did(#call, (long) (call))

long did(const char *what, long result);
struct sockaddr_in at(const char *host, int port);
struct sockaddr_in6 at6(const char *host, int port);
int port_of(int fd);
void name(const char *what, int fd, int peer);
void ready(const char *what, int fd);
int option(int fd, int level, int number);
int listening(const char *host);
void connected(int *client, int *server);

void addresses(void);
void tcp(void);
void endings(void);
void udp(void);
void options(void);
void edges(void);
