/* One function for each file system operation: where to look for all of them (FreeBSD's vnode_if.c is generated too). */
#include "sys/vnode.h"
#include "sys/systm.h"

#define X(lower, upper)                                                                    \
	int VOP_##upper##_APV(const struct vop_vector *vop, struct vop_##lower##_args *a) \
	{                                                                                  \
		return (vop->vop_##lower != NULL ? vop->vop_##lower(a) : vop_einval());    \
	}
VNODE_OPERATIONS(X)
