/* open(2), fcntl(2), lseek(2), access(2). FreeBSD's values. */
#ifndef SYS_FCNTL_H
#define SYS_FCNTL_H

#define O_RDONLY 0x0000
#define O_WRONLY 0x0001
#define O_RDWR 0x0002
#define O_ACCMODE 0x0003
#define O_NONBLOCK 0x0004
#define O_APPEND 0x0008
#define O_CREAT 0x0200
#define O_TRUNC 0x0400
#define O_EXCL 0x0800
#define O_DIRECTORY 0x00020000
#define O_CLOEXEC 0x00100000

#define FREAD 0x0001 /* of f_flag: O_RDONLY + 1 and so on, so that each bit means one thing */
#define FWRITE 0x0002
#define FFLAGS(oflags) ((oflags) + 1)

#define F_DUPFD 0
#define F_GETFD 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define FD_CLOEXEC 1

#define AT_FDCWD (-100)

#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2

#define R_OK 4
#define W_OK 2
#define X_OK 1

#endif
