/* Open files and descriptor tables (FreeBSD sys/sys/file.h, filedesc.h). */
#ifndef SYS_FILE_H
#define SYS_FILE_H

#include "sys/fcntl.h"
#include "sys/param.h"
#include "sys/stat.h"
#include "sys/uio.h"

struct file;
struct thread;
struct vnode;

struct fileops {
	int (*fo_read)(struct file *fp, struct uio *uio, struct thread *td);
	int (*fo_write)(struct file *fp, struct uio *uio, struct thread *td);
	int (*fo_truncate)(struct file *fp, off_t length, struct thread *td);
	int (*fo_ioctl)(struct file *fp, uint64_t com, void *data, struct thread *td);
	int (*fo_stat)(struct file *fp, struct stat *sb, struct thread *td);
	int (*fo_close)(struct file *fp, struct thread *td);
};

#define DTYPE_VNODE 1
#define DTYPE_SOCKET 2
#define DTYPE_PIPE 3

struct file {
	const struct fileops *f_ops;
	void *f_data;		/* struct pipe, struct socket */
	struct vnode *f_vnode;
	off_t f_offset;
	int f_count;
	int f_flag;		/* FREAD, FWRITE, O_APPEND, O_NONBLOCK */
	short f_type;
};

struct filedescent {
	struct file *fde_file;
	int fde_flags; /* FD_CLOEXEC */
};

struct filedesc {
	struct filedescent fd_ofiles[NOFILE];
	struct vnode *fd_cdir, *fd_rdir;
	mode_t fd_cmask;
	int fd_refcnt;
};

int falloc(struct thread *td, struct file **resultfp, int *resultfd, int flags);
int falloc_noinstall(struct thread *td, struct file **resultfp);
int finstall(struct thread *td, struct file *fp, int *resultfd, int flags);
void finit(struct file *fp, int flag, short type, void *data, const struct fileops *ops);
int fdalloc(struct thread *td, int minfd, int *result);
void fhold(struct file *fp);
int _fdrop(struct file *fp, struct thread *td);
int fdrop(struct file *fp, struct thread *td);
int fget(struct thread *td, int fd, struct file **fpp);
int fget_read(struct thread *td, int fd, struct file **fpp);
int fget_write(struct thread *td, int fd, struct file **fpp);
int fo_read(struct file *fp, struct uio *uio, struct thread *td);
int fo_write(struct file *fp, struct uio *uio, struct thread *td);
int closef(struct file *fp, struct thread *td);
void fdclose(struct thread *td, struct file *fp, int fd);
struct filedesc *fdinit(void);
struct filedesc *fdcopy(struct filedesc *fdp);
void fdescfree(struct thread *td);
void fdcloseexec(struct thread *td);
int kern_close(struct thread *td, int fd);
int invfo_truncate(struct file *fp, off_t length, struct thread *td);
int invfo_ioctl(struct file *fp, uint64_t com, void *data, struct thread *td);

#endif
