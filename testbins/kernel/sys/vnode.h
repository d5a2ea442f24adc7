/* Files as the kernel sees them (FreeBSD sys/sys/vnode.h, namei.h, conf.h). */
#ifndef SYS_VNODE_H
#define SYS_VNODE_H

#include "sys/lock.h"
#include "sys/mount.h"
#include "sys/param.h"
#include "sys/queue.h"
#include "sys/stat.h"
#include "sys/types.h"
#include "sys/uio.h"

struct namecache;
struct thread;
struct vop_vector;

enum vtype { VNON, VREG, VDIR, VCHR };

struct cdev;
struct cdevsw {
	const char *d_name;
	int (*d_read)(struct cdev *dev, struct uio *uio, int ioflag);
	int (*d_write)(struct cdev *dev, struct uio *uio, int ioflag);
	int (*d_open)(struct cdev *dev, uintptr_t *priv); /* priv stays with the open file (FreeBSD's cdevpriv) */
	void (*d_close)(struct cdev *dev, uintptr_t priv);
	int (*d_ioctl)(struct cdev *dev, uintptr_t priv, uint64_t cmd, void *data); /* data: a copy in the kernel */
};

struct cdev {
	const struct cdevsw *si_devsw;
	const char *si_name;
	uint32_t si_unit;
	int si_threadcount; /* opens of a device with d_close */
};

struct vnode {
	enum vtype v_type;
	const struct vop_vector *v_op;
	void *v_data;		    /* struct memfs_node */
	struct mount *v_mount;	    /* the file system it is in */
	struct cdev *v_rdev;
	struct sx v_lock;
	int v_usecount;
	int v_textcount;	    /* processes that run it: no writing */
	TAILQ_HEAD(, namecache) v_cache_src; /* names in this directory */
	TAILQ_HEAD(, namecache) v_cache_dst; /* names of this vnode */
	struct namecache *v_cache_dd;	     /* a directory's name; NULL if it is not known */
};

struct vattr {
	enum vtype va_type;
	mode_t va_mode;
	uid_t va_uid;
	gid_t va_gid;
	uint32_t va_nlink;
	ino_t va_fileid;
	off_t va_size;
	uint64_t va_mtime;
	uint32_t va_rdev;
};

enum nameiop { LOOKUP, CREATE, DELETE, RENAME };
#define FOLLOW 0x0040
#define WANTPARENT 0x0010
#define ISLASTCN 0x8000
#define ISDOTDOT 0x2000
#define MAKEENTRY 0x4000
#define TRAILINGSLASH 0x10000
#define WILLBEDIR 0x80000

struct componentname {
	enum nameiop cn_nameiop;
	uint32_t cn_flags;
	const char *cn_nameptr;
	size_t cn_namelen;
};

struct nameidata {
	const char *ni_dirp;	 /* the path, user or kernel */
	enum uio_seg ni_segflg;
	int ni_dirfd;
	struct vnode *ni_vp;	 /* result: the vnode, NULL if there is none (CREATE, RENAME) */
	struct vnode *ni_dvp;	 /* result: its directory, if not NULL */
	struct componentname ni_cnd;
	char *ni_pathbuf;
};

void NDINIT(struct nameidata *ndp, enum nameiop op, uint32_t flags, enum uio_seg segflg, const char *path);
void NDINIT_AT(struct nameidata *ndp, enum nameiop op, uint32_t flags, enum uio_seg segflg, const char *path, int dirfd);
int namei(struct nameidata *ndp);
int vfs_lookup(struct nameidata *ndp, struct vnode *startdir);
void NDFREE_PNBUF(struct nameidata *ndp);

/* vnode_if.h, in short: each operation takes one structure, as FreeBSD's do. */
struct vop_lookup_args { struct vnode *a_dvp; struct vnode **a_vpp; struct componentname *a_cnp; };
struct vop_create_args { struct vnode *a_dvp; struct vnode **a_vpp; struct componentname *a_cnp; struct vattr *a_vap; };
struct vop_mkdir_args { struct vnode *a_dvp; struct vnode **a_vpp; struct componentname *a_cnp; struct vattr *a_vap; };
struct vop_remove_args { struct vnode *a_dvp; struct vnode *a_vp; struct componentname *a_cnp; };
struct vop_rmdir_args { struct vnode *a_dvp; struct vnode *a_vp; struct componentname *a_cnp; };
struct vop_link_args { struct vnode *a_tdvp; struct vnode *a_vp; struct componentname *a_cnp; };
struct vop_rename_args { struct vnode *a_fdvp; struct vnode *a_fvp; struct componentname *a_fcnp; struct vnode *a_tdvp; struct vnode *a_tvp; struct componentname *a_tcnp; };
struct vop_read_args { struct vnode *a_vp; struct uio *a_uio; int a_ioflag; };
struct vop_write_args { struct vnode *a_vp; struct uio *a_uio; int a_ioflag; };
struct vop_readdir_args { struct vnode *a_vp; struct uio *a_uio; int *a_eofflag; };
struct vop_getattr_args { struct vnode *a_vp; struct vattr *a_vap; };
struct vop_setsize_args { struct vnode *a_vp; off_t a_size; };
struct vop_getpage_args { struct vnode *a_vp; off_t a_offset; paddr_t *a_page; };
struct vop_inactive_args { struct vnode *a_vp; };

#define VNODE_OPERATIONS(X)                                                                  \
	X(lookup, LOOKUP) X(create, CREATE) X(mkdir, MKDIR) X(remove, REMOVE) X(rmdir, RMDIR) \
	X(link, LINK) X(rename, RENAME) X(read, READ) X(write, WRITE) X(readdir, READDIR)     \
	X(getattr, GETATTR) X(setsize, SETSIZE) X(getpage, GETPAGE) X(inactive, INACTIVE)

struct vop_vector {
#define X(lower, upper) int (*vop_##lower)(struct vop_##lower##_args *);
	VNODE_OPERATIONS(X)
#undef X
};

#define X(lower, upper) int VOP_##upper##_APV(const struct vop_vector *vop, struct vop_##lower##_args *a);
VNODE_OPERATIONS(X)
#undef X

#define VOP_LOOKUP(dvp, vpp, cnp) VOP_LOOKUP_APV((dvp)->v_op, &(struct vop_lookup_args){ dvp, vpp, cnp })
#define VOP_CREATE(dvp, vpp, cnp, vap) VOP_CREATE_APV((dvp)->v_op, &(struct vop_create_args){ dvp, vpp, cnp, vap })
#define VOP_MKDIR(dvp, vpp, cnp, vap) VOP_MKDIR_APV((dvp)->v_op, &(struct vop_mkdir_args){ dvp, vpp, cnp, vap })
#define VOP_REMOVE(dvp, vp, cnp) VOP_REMOVE_APV((dvp)->v_op, &(struct vop_remove_args){ dvp, vp, cnp })
#define VOP_RMDIR(dvp, vp, cnp) VOP_RMDIR_APV((dvp)->v_op, &(struct vop_rmdir_args){ dvp, vp, cnp })
#define VOP_LINK(tdvp, vp, cnp) VOP_LINK_APV((tdvp)->v_op, &(struct vop_link_args){ tdvp, vp, cnp })
#define VOP_RENAME(fdvp, fvp, fcnp, tdvp, tvp, tcnp) \
	VOP_RENAME_APV((fdvp)->v_op, &(struct vop_rename_args){ fdvp, fvp, fcnp, tdvp, tvp, tcnp })
#define VOP_READ(vp, uio, ioflag) VOP_READ_APV((vp)->v_op, &(struct vop_read_args){ vp, uio, ioflag })
#define VOP_WRITE(vp, uio, ioflag) VOP_WRITE_APV((vp)->v_op, &(struct vop_write_args){ vp, uio, ioflag })
#define VOP_READDIR(vp, uio, eofflag) VOP_READDIR_APV((vp)->v_op, &(struct vop_readdir_args){ vp, uio, eofflag })
#define VOP_GETATTR(vp, vap) VOP_GETATTR_APV((vp)->v_op, &(struct vop_getattr_args){ vp, vap })
#define VOP_SETSIZE(vp, size) VOP_SETSIZE_APV((vp)->v_op, &(struct vop_setsize_args){ vp, size })
#define VOP_GETPAGE(vp, offset, page) VOP_GETPAGE_APV((vp)->v_op, &(struct vop_getpage_args){ vp, offset, page })
#define VOP_INACTIVE(vp) VOP_INACTIVE_APV((vp)->v_op, &(struct vop_inactive_args){ vp })
#define IO_APPEND 0x0002

/* vfs_subr.c */
extern struct mount memfs_mount, devfs_mount;
struct vnode *getnewvnode(enum vtype type, const struct vop_vector *vop, void *data);
void freevnode(struct vnode *vp);
void vref(struct vnode *vp);
void vrele(struct vnode *vp);
void vput(struct vnode *vp);
int vn_lock(struct vnode *vp);
void VOP_UNLOCK(struct vnode *vp);
int vop_einval(void);

/* vfs_vnops.c */
struct file;
int vn_open(struct nameidata *ndp, int *flagp, int cmode, struct file *fp);
int vn_close(struct vnode *vp, int flags, struct thread *td);
int vn_rdwr(enum uio_rw rw, struct vnode *vp, void *base, size_t len, off_t offset, size_t *aresid, struct thread *td);
int vn_stat(struct vnode *vp, struct stat *sb);
extern const struct fileops vnops;

/* vfs_cache.c */
struct namecache {
	TAILQ_ENTRY(namecache) nc_hash;
	TAILQ_ENTRY(namecache) nc_src;
	TAILQ_ENTRY(namecache) nc_dst;
	TAILQ_ENTRY(namecache) nc_lru;
	struct vnode *nc_dvp;
	struct vnode *nc_vp; /* NULL: known not to be there */
	uint8_t nc_nlen;
	char nc_name[];
};

/* cache_lookup gives -1 with *vpp referenced for a hit, ENOENT for a negative hit, 0 for a miss */
int cache_lookup(struct vnode *dvp, struct vnode **vpp, struct componentname *cnp);
void cache_enter(struct vnode *dvp, struct vnode *vp, struct componentname *cnp);
void cache_purge(struct vnode *vp);
void cache_purge_negative(struct vnode *dvp);

/* memfs, devfs */
int vn_getcwd(struct vnode *vp, char *buffer, size_t *length); /* PATH_MAX bytes; length counts the NUL */
extern struct vnode *rootvnode;
extern const struct vop_vector devfs_specops;
int memfs_unpack(const char *archive, size_t size);
void memfs_set_initrd(paddr_t start, size_t size);
void destroy_dev(struct cdev *dev);
int memfs_rmpath(const char *path, struct vnode **vpp);
struct cdev *make_dev(const struct cdevsw *devsw, uint32_t unit, const char *name);
int memfs_mkpath(const char *path, enum vtype type, mode_t mode, struct vnode **vpp);

#endif
