/* One function for each file system operation: where to look for all of them (FreeBSD's vnode_if.c is generated too). */
#include "sys/vnode.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(vfs);

#define X(lower, upper)                                                                                               \
	SDT_PROBE_DEFINE2(vfs, vop, vop_##lower, entry, "struct vnode *", "struct vop_" #lower "_args *");            \
	SDT_PROBE_DEFINE3(vfs, vop, vop_##lower, return, "struct vnode *", "struct vop_" #lower "_args *", "int");    \
	int VOP_##upper##_APV(const struct vop_vector *vop, struct vop_##lower##_args *a)                            \
	{                                                                                                             \
		struct vnode *vp = *(struct vnode **)a; /* every operation's first argument */                       \
		int rc;                                                                                               \
                                                                                                                      \
		SDT_PROBE2(vfs, vop, vop_##lower, entry, vp, a);                                                      \
		rc = vop->vop_##lower != NULL ? vop->vop_##lower(a) : vop_einval();                                   \
		SDT_PROBE3(vfs, vop, vop_##lower, return, vp, a, rc);                                                 \
		return (rc);                                                                                          \
	}
VNODE_OPERATIONS(X)
