/* From a path to a vnode (FreeBSD sys/kern/vfs_lookup.c). */
#include "sys/cpuvar.h"
#include "sys/file.h"
#include "sys/malloc.h"
#include "sys/sdt.h"
#include "sys/systm.h"
#include "sys/vnode.h"

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE3(vfs, namei, lookup, entry, "struct vnode *", "char *", "unsigned long");
SDT_PROBE_DEFINE2(vfs, namei, lookup, return, "int", "struct vnode *");

MALLOC_DEFINE(M_NAMEI, "namei", "path names");

void
NDINIT_AT(struct nameidata *ndp, enum nameiop op, uint32_t flags, enum uio_seg segflg, const char *path, int dirfd)
{
	bzero(ndp, sizeof(*ndp));
	ndp->ni_cnd.cn_nameiop = op;
	ndp->ni_cnd.cn_flags = flags;
	ndp->ni_segflg = segflg;
	ndp->ni_dirp = path;
	ndp->ni_dirfd = dirfd;
}

void
NDINIT(struct nameidata *ndp, enum nameiop op, uint32_t flags, enum uio_seg segflg, const char *path)
{
	NDINIT_AT(ndp, op, flags, segflg, path, AT_FDCWD);
}

void
NDFREE_PNBUF(struct nameidata *ndp)
{
	free(ndp->ni_pathbuf, M_NAMEI);
	ndp->ni_pathbuf = NULL;
}

static int
namei_getpath(struct nameidata *ndp)
{
	int error = 0;

	ndp->ni_pathbuf = malloc(PATH_MAX, M_NAMEI, M_WAITOK);
	if (ndp->ni_segflg == UIO_USERSPACE)
		error = copyinstr(ndp->ni_dirp, ndp->ni_pathbuf, PATH_MAX, NULL);
	else if (strlcpy(ndp->ni_pathbuf, ndp->ni_dirp, PATH_MAX) >= PATH_MAX)
		error = ENAMETOOLONG;
	return (error == 0 && ndp->ni_pathbuf[0] == '\0' ? ENOENT : error);
}

/* Where the path starts, referenced: the root, the current directory, or that of a descriptor. */
static int
namei_setup(struct nameidata *ndp, struct vnode **startdir)
{
	struct filedesc *fdp = curproc->p_fd;
	struct file *fp;
	int error;

	if (ndp->ni_pathbuf[0] == '/')
		*startdir = fdp->fd_rdir;
	else if (ndp->ni_dirfd == AT_FDCWD)
		*startdir = fdp->fd_cdir;
	else {
		if ((error = fget(curthread, ndp->ni_dirfd, &fp)) != 0)
			return (error);
		*startdir = fp->f_vnode;
		if (*startdir != NULL && (*startdir)->v_type == VDIR)
			vref(*startdir);
		else
			error = ENOTDIR;
		fdrop(fp, curthread);
		return (error);
	}
	vref(*startdir);
	return (0);
}

/*
 * On success ni_vp is referenced (NULL if CREATE or RENAME found nothing), ni_dvp too if WANTPARENT
 * asked for it, and ni_cnd is the last component; the caller calls NDFREE_PNBUF. On error nothing is left.
 */
int
namei(struct nameidata *ndp)
{
	struct vnode *startdir;
	int error = namei_getpath(ndp);

	CPU_STATS_ADD(sysinfo, namei, 1);
	if (error == 0)
		error = namei_setup(ndp, &startdir);
	if (error == 0) {
		SDT_PROBE3(vfs, namei, lookup, entry, startdir, ndp->ni_pathbuf, ndp->ni_cnd.cn_flags);
		error = vfs_lookup(ndp, startdir);
		SDT_PROBE2(vfs, namei, lookup, return, error, error == 0 ? ndp->ni_vp : NULL);
	}
	if (error != 0)
		NDFREE_PNBUF(ndp);
	return (error);
}

/* The next component of the path; false at the end. */
static bool
vfs_next_component(struct componentname *cnp, const char **path)
{
	const char *s = *path;

	while (*s == '/')
		s++;
	cnp->cn_nameptr = s;
	while (*s != '/' && *s != '\0')
		s++;
	cnp->cn_namelen = s - cnp->cn_nameptr;
	cnp->cn_flags &= ~(ISLASTCN | ISDOTDOT | MAKEENTRY | TRAILINGSLASH);
	if (*s == '/')
		cnp->cn_flags |= TRAILINGSLASH;
	while (*s == '/')
		s++;
	if (*s == '\0')
		cnp->cn_flags |= ISLASTCN;
	if (cnp->cn_namelen == 2 && cnp->cn_nameptr[0] == '.' && cnp->cn_nameptr[1] == '.')
		cnp->cn_flags |= ISDOTDOT;
	else if (!(cnp->cn_flags & ISLASTCN) || cnp->cn_nameiop == LOOKUP)
		cnp->cn_flags |= MAKEENTRY;
	*path = s;
	return (cnp->cn_namelen > 0);
}

/* One component: the cache, then the file system. Gives a reference. */
static int
vfs_lookup_component(struct vnode *dvp, struct vnode **vpp, struct componentname *cnp)
{
	int error;

	if (dvp->v_type != VDIR)
		return (ENOTDIR);
	if (cnp->cn_namelen > NAME_MAX)
		return (ENAMETOOLONG);
	if (cnp->cn_namelen == 1 && cnp->cn_nameptr[0] == '.') {
		*vpp = dvp;
		vref(dvp);
		return (0);
	}
	if (!(cnp->cn_flags & ISDOTDOT)) {
		error = cache_lookup(dvp, vpp, cnp);
		if (error != 0)
			return (error == -1 ? 0 : error);
	}
	vn_lock(dvp);
	error = VOP_LOOKUP(dvp, vpp, cnp);
	VOP_UNLOCK(dvp);
	if (cnp->cn_flags & MAKEENTRY && (error == 0 || error == ENOENT))
		cache_enter(dvp, error == 0 ? *vpp : NULL, cnp);
	return (error);
}

/* Walks from startdir, whose reference it takes over. */
int
vfs_lookup(struct nameidata *ndp, struct vnode *startdir)
{
	struct componentname *cnp = &ndp->ni_cnd;
	const char *path = ndp->ni_pathbuf;
	struct vnode *dvp = startdir, *vp = NULL;
	bool creating = cnp->cn_nameiop == CREATE || cnp->cn_nameiop == RENAME;
	int error;

	if (!vfs_next_component(cnp, &path)) { /* the root itself */
		if (cnp->cn_nameiop != LOOKUP) {
			vrele(dvp);
			return (cnp->cn_nameiop == CREATE ? EEXIST : EBUSY);
		}
		ndp->ni_vp = dvp;
		return (0);
	}
	for (;;) {
		vp = NULL;
		error = vfs_lookup_component(dvp, &vp, cnp);
		if (cnp->cn_flags & ISLASTCN)
			break;
		vrele(dvp);
		if (error != 0)
			return (error);
		dvp = vp;
		vfs_next_component(cnp, &path);
	}
	if (error == ENOENT && creating && (!(cnp->cn_flags & TRAILINGSLASH) || cnp->cn_flags & WILLBEDIR))
		error = 0;
	else if (error == 0 && cnp->cn_flags & TRAILINGSLASH && vp->v_type != VDIR) {
		vrele(vp);
		error = ENOTDIR;
	}
	if (error != 0) {
		vrele(dvp);
		return (error);
	}
	ndp->ni_vp = vp;
	if (cnp->cn_flags & WANTPARENT)
		ndp->ni_dvp = dvp;
	else
		vrele(dvp);
	return (0);
}
