/* Types that every FreeBSD kernel has and the teaching kernel does not use (FreeBSD sys/types.h, sys/_types.h). */

#pragma D depends_on library inet.d

typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned long u_long;
typedef uint8_t u_int8_t;
typedef uint16_t u_int16_t;
typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
typedef int64_t quad_t;
typedef uint64_t u_quad_t;
typedef long long longlong_t;
typedef char *caddr_t;

typedef int32_t blksize_t;
typedef int64_t blkcnt_t;
typedef int32_t clock_t;
typedef int32_t clockid_t;
typedef long critical_t;
typedef int64_t daddr_t;
typedef uint32_t fflags_t;
typedef uint32_t fixpt_t;
typedef uint64_t fsblkcnt_t;
typedef uint64_t fsfilcnt_t;
typedef long key_t;
typedef uint16_t kmode_t;
typedef int accmode_t;
typedef uint64_t nlink_t;
typedef long register_t;
typedef unsigned long u_register_t;
typedef int64_t rlim_t;
typedef int64_t sbintime_t;
typedef long segsz_t;
typedef long suseconds_t;
typedef unsigned int useconds_t;
typedef uint32_t socklen_t;

typedef unsigned long vm_offset_t;
typedef unsigned long vm_size_t;
typedef int64_t vm_ooffset_t;
typedef uint64_t vm_paddr_t;
typedef uint64_t vm_pindex_t;

typedef uint8_t sa_family_t;

struct bintime {
	long sec;
	uint64_t frac;
};

struct rlimit {
	int64_t rlim_cur;
	int64_t rlim_max;
};

struct iovec {
	void *iov_base;
	size_t iov_len;
};

struct pollfd {
	int fd;
	short events;
	short revents;
};

struct sockaddr {
	unsigned char sa_len;
	sa_family_t sa_family;
	char sa_data[14];
};

struct sockaddr_un {
	unsigned char sun_len;
	sa_family_t sun_family;
	char sun_path[104];
};

struct sockaddr_in6 {
	uint8_t sin6_len;
	sa_family_t sin6_family;
	in_port_t sin6_port;
	uint32_t sin6_flowinfo;
	struct in6_addr sin6_addr;
	uint32_t sin6_scope_id;
};

struct msghdr {
	void *msg_name;
	uint32_t msg_namelen;
	struct iovec *msg_iov;
	int msg_iovlen;
	void *msg_control;
	uint32_t msg_controllen;
	int msg_flags;
};
