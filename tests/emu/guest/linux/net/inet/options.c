/* Options, and the interface. */
#include "cases.h"

static void all(const char *what, int fd, int level, int last)
{
    printf("%s, level %d:", what, level);
    for (int number = 1; number <= last; number++) {
        unsigned char value[512];
        socklen_t size = 8;
        memset(value, 0, sizeof value);
        if (getsockopt(fd, level, number, value, &size) == 0 && size == 4)
            printf(" %d=%d", number, *(int *) value);
    }
    printf("\n");
}

static int set(int fd, int level, int number, int value)
{
    return setsockopt(fd, level, number, &value, sizeof value) < 0 ? -errno : option(fd, level, number);
}

static void numbers(int fd, int is_tcp)
{
    printf("service %d ttl %d %d %d\n", set(fd, SOL_IP, IP_TOS, 0x13), set(fd, SOL_IP, IP_TTL, 99), set(fd, SOL_IP, IP_TTL, 0), set(fd, SOL_IP, IP_TTL, 256));
    printf("errors %d discover %d %d\n", set(fd, SOL_IP, IP_RECVERR, 5), set(fd, SOL_IP, IP_MTU_DISCOVER, 2), set(fd, SOL_IP, IP_MTU_DISCOVER, 9));
    printf("unknown %d %d\n", set(fd, SOL_IP, 190, 1), set(fd, 99, 1, 1));
    printf("one byte %d\n", setsockopt(fd, SOL_IP, IP_TTL, "\x07", 1) < 0 ? -errno : option(fd, SOL_IP, IP_TTL));
    printf("reuse %d %d keep %d\n", set(fd, SOL_SOCKET, SO_REUSEADDR, 7), set(fd, SOL_SOCKET, SO_REUSEPORT, 1), set(fd, SOL_SOCKET, SO_KEEPALIVE, 3));
    printf("buffers %d %d %d\n", set(fd, SOL_SOCKET, SO_SNDBUF, 10000), set(fd, SOL_SOCKET, SO_RCVBUF, 10000), set(fd, SOL_SOCKET, SO_RCVBUF, 1));
    printf("type %d domain %d protocol %d\n", option(fd, SOL_SOCKET, SO_TYPE), option(fd, SOL_SOCKET, SO_DOMAIN), option(fd, SOL_SOCKET, SO_PROTOCOL));
    if (is_tcp) {
        printf("nodelay %d cork %d\n", set(fd, SOL_TCP, TCP_NODELAY, 4), set(fd, SOL_TCP, TCP_CORK, 1));
        printf("keep %d %d %d %d %d\n", set(fd, SOL_TCP, TCP_KEEPIDLE, 10), set(fd, SOL_TCP, TCP_KEEPINTVL, 11), set(fd, SOL_TCP, TCP_KEEPCNT, 12), set(fd, SOL_TCP, TCP_KEEPCNT, 128), set(fd, SOL_TCP, TCP_KEEPIDLE, 0));
        printf("user timeout %d segment %d %d\n", set(fd, SOL_TCP, TCP_USER_TIMEOUT, 1000), set(fd, SOL_TCP, TCP_MAXSEG, 1000), set(fd, SOL_TCP, TCP_MAXSEG, 10));
        printf("short %d\n", setsockopt(fd, SOL_TCP, TCP_NODELAY, "\1", 1) < 0 ? -errno : 0);
    }
    struct linger linger = { 1, 5 };
    socklen_t size = sizeof linger;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    memset(&linger, 0, sizeof linger);
    getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size);
    printf("linger %d %d\n", linger.l_onoff, linger.l_linger);
}

static void six(int fd)
{
    printf("only %d hops %d %d class %d %d\n", set(fd, SOL_IPV6, IPV6_V6ONLY, 1), set(fd, SOL_IPV6, IPV6_UNICAST_HOPS, 12), set(fd, SOL_IPV6, IPV6_UNICAST_HOPS, 300), set(fd, SOL_IPV6, IPV6_TCLASS, 9), set(fd, SOL_IPV6, IPV6_TCLASS, 256));
    printf("packets %d errors %d hops %d\n", set(fd, SOL_IPV6, IPV6_RECVPKTINFO, 1), set(fd, SOL_IPV6, IPV6_RECVERR, 1), set(fd, SOL_IPV6, IPV6_RECVHOPLIMIT, 1));
}

static void inherited(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, one = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    listen(fd, 1);
    struct sockaddr_in a = at("127.0.0.1", port_of(fd));
    connect(one, (void *) &a, sizeof a);
    int served = accept(fd, 0, 0);
    printf("inherited %d %d\n", option(served, SOL_TCP, TCP_NODELAY), option(served, SOL_SOCKET, SO_KEEPALIVE));
    close(fd), close(one), close(served);
}

static void timeouts(void)
{
    int one, two;
    char c;
    struct timeval short_time = { 0, 20000 };
    connected(&one, &two);
    setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time);
    DO(recv(one, &c, 1, 0));
    DO(read(one, &c, 1));
    close(one), close(two);
    one = listening("127.0.0.1");
    setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof short_time);
    DO(accept(one, 0, 0));
    close(one);
}

static void loopback(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq r = { .ifr_name = "lo" };
    DO(ioctl(fd, SIOCGIFFLAGS, &r));
    printf("flags %#x\n", r.ifr_flags);
    DO(ioctl(fd, SIOCGIFADDR, &r));
    printf("address %s\n", inet_ntoa(((struct sockaddr_in *) &r.ifr_addr)->sin_addr));
    DO(ioctl(fd, SIOCGIFNETMASK, &r));
    printf("mask %s\n", inet_ntoa(((struct sockaddr_in *) &r.ifr_netmask)->sin_addr));
    DO(ioctl(fd, SIOCGIFMTU, &r));
    printf("mtu %d\n", r.ifr_mtu);
    DO(ioctl(fd, SIOCGIFINDEX, &r));
    printf("index %d\n", r.ifr_ifindex);
    DO(ioctl(fd, SIOCGIFNAME, &r));
    printf("name %s\n", r.ifr_name);
    strcpy(r.ifr_name, "nothing");
    DO(ioctl(fd, SIOCGIFFLAGS, &r));
    struct ifreq several[8];
    struct ifconf c = { sizeof several, { (void *) several } };
    DO(ioctl(fd, SIOCGIFCONF, &c));
    printf("first %s\n", several[0].ifr_name);
    printf("index by name %u\n", if_nametoindex("lo"));
    DO(ioctl(fd, TIOCOUTQ, &c));
    DO(ioctl(fd, 0x5401, &c));
    close(fd);
}

static void interfaces(void)
{
    struct ifaddrs *all, *one;
    DO(getifaddrs(&all));
    for (one = all; one; one = one->ifa_next)
        if (!strcmp(one->ifa_name, "lo"))
            printf("lo: flags %#x family %d\n", one->ifa_flags, one->ifa_addr->sa_family);
    freeifaddrs(all);
}

/* The row of a table in /proc/net that has a port: local address and state. */
static void row(const char *file, int fd)
{
    char line[512], address[64], port[8];
    unsigned state, number;
    FILE *table = fopen(file, "r");
    while (table && fgets(line, sizeof line, table))
        if (sscanf(line, " %u: %33[^:]:%4s %*s %x", &number, address, port, &state) == 4)
            if (strtol(port, 0, 16) == port_of(fd))
                printf("%s: %s state %#x\n", file, address, state);
    if (table)
        fclose(table);
}

static void tables(void)
{
    int four = listening("127.0.0.1"), six = socket(AF_INET6, SOCK_STREAM, 0), udp4 = socket(AF_INET, SOCK_DGRAM, 0);
    listen(six, 1);
    row("/proc/net/tcp", four), row("/proc/net/tcp6", six);
    struct sockaddr_in a = at("127.0.0.1", 9);
    connect(udp4, (void *) &a, sizeof a);
    row("/proc/net/udp", udp4);
    close(four), close(six), close(udp4);
}

void options(void)
{
    int tcp4 = socket(AF_INET, SOCK_STREAM, 0), udp4 = socket(AF_INET, SOCK_DGRAM, 0);
    int tcp6 = socket(AF_INET6, SOCK_STREAM, 0), udp6 = socket(AF_INET6, SOCK_DGRAM, 0);
    all("tcp", tcp4, SOL_IP, 15), all("tcp", tcp4, SOL_TCP, 9), all("tcp", tcp4, SOL_SOCKET, 15);
    all("udp", udp4, SOL_IP, 15), all("udp", udp4, IPPROTO_UDP, 1), all("udp", udp4, SOL_SOCKET, 15);
    all("tcp6", tcp6, SOL_IPV6, 26), all("udp6", udp6, SOL_IPV6, 26);
    numbers(tcp4, 1), numbers(udp4, 0), numbers(tcp6, 1), numbers(udp6, 0), six(tcp6), six(udp6);
    DO(set(tcp4, SOL_IPV6, IPV6_V6ONLY, 1) + 1000);
    DO(set(udp4, SOL_TCP, TCP_NODELAY, 1) + 1000);
    close(tcp4), close(udp4), close(tcp6), close(udp6);
    inherited();
    timeouts();
    loopback();
    interfaces();
    tables();
}
