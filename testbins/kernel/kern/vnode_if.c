/*
 * One function for each file system operation: where to look for all of them (FreeBSD's vnode_if.c is generated too).
 * vfs:vop: is FreeBSD's; fsinfo, which tells of what was done, with the number of bytes that were moved, is illumos'
 * (usr/src/uts/common/fs/vnode.c).
 */
#include "sys/vnode.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(vfs);
SDT_PROVIDER_DEFINE(fsinfo);

/* The bytes that are still to be moved; 0 for an operation without any. */
#define vop_resid(a)                                                                          \
	_Generic((a),                                                                         \
	    struct vop_read_args *: ((const struct vop_read_args *)(a))->a_uio->uio_resid,    \
	    struct vop_write_args *: ((const struct vop_write_args *)(a))->a_uio->uio_resid,  \
	    default: 0)

#define X(lower, upper)                                                                                               \
	SDT_PROBE_DEFINE2(vfs, vop, vop_##lower, entry, "struct vnode *", "struct vop_" #lower "_args *");            \
	SDT_PROBE_DEFINE3(vfs, vop, vop_##lower, return, "struct vnode *", "struct vop_" #lower "_args *", "int");    \
	SDT_PROBE_DEFINEN(2, fsinfo, , , lower);                                                                      \
	SDT_ARG(fsinfo, , , lower, 0, "struct vnode *", "fileinfo_t *");                                              \
	SDT_ARG(fsinfo, , , lower, 1, "int", NULL);                                                                   \
	int VOP_##upper##_APV(const struct vop_vector *vop, struct vop_##lower##_args *a)                            \
	{                                                                                                             \
		struct vnode *vp = *(struct vnode **)a; /* every operation's first argument */                       \
		const ssize_t before = vop_resid(a);                                                                  \
		int rc;                                                                                               \
                                                                                                                      \
		SDT_PROBE2(vfs, vop, vop_##lower, entry, vp, a);                                                      \
		rc = vop->vop_##lower != NULL ? vop->vop_##lower(a) : vop_einval();                                   \
		SDT_PROBE3(vfs, vop, vop_##lower, return, vp, a, rc);                                                 \
		if (rc == 0)                                                                                          \
			SDT_PROBE2(fsinfo, , , lower, vp, before - vop_resid(a));                                     \
		return (rc);                                                                                          \
	}
VNODE_OPERATIONS(X)
