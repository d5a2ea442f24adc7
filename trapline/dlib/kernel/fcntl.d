/* Flags of open(2), which fi_oflags has (FreeBSD sys/fcntl.h). O_RDONLY and the next two are numbers: compare them. */

inline int O_RDONLY = 0x0000;
inline int O_WRONLY = 0x0001;
inline int O_RDWR = 0x0002;
inline int O_ACCMODE = 0x0003;
inline int O_NONBLOCK = 0x0004;
inline int O_NDELAY = 0x0004;
inline int O_APPEND = 0x0008;
inline int O_SYNC = 0x0080;
inline int O_CREAT = 0x0200;
inline int O_TRUNC = 0x0400;
inline int O_EXCL = 0x0800;
inline int O_NOCTTY = 0x8000;
