/* Vnodes (FreeBSD sys/kern/vfs_subr.c). A vnode lives as long as its file has a name or a user. */
#include "sys/systm.h"
#include "sys/vm.h"
#include "sys/vnode.h"

static uma_zone_t vnode_zone;

/* There are two, and no call mounts another.  Devices are in /dev, whose directory belongs to the first. */
struct mount memfs_mount = { .mnt_stat = { "memfs", "memfs", "/" } };
struct mount devfs_mount = { .mnt_stat = { "devfs", "devfs", "/dev" } };

static void
vntblinit(const void *unused __unused)
{
	vnode_zone = uma_zcreate("VNODE", sizeof(struct vnode));
}
SYSINIT(vntblinit, SI_SUB_VFS, SI_ORDER_FIRST, vntblinit, NULL);

/* A new vnode with one reference; NULL without memory. */
struct vnode *
getnewvnode(enum vtype type, const struct vop_vector *vop, void *data)
{
	struct vnode *vp = uma_zalloc(vnode_zone, 0);

	if (vp == NULL)
		return (NULL);
	bzero(vp, sizeof(*vp));
	sx_init(&vp->v_lock, "vnode");
	TAILQ_INIT(&vp->v_cache_src);
	TAILQ_INIT(&vp->v_cache_dst);
	vp->v_type = type;
	vp->v_op = vop;
	vp->v_data = data;
	vp->v_mount = type == VCHR ? &devfs_mount : &memfs_mount;
	vp->v_usecount = 1;
	return (vp);
}

void
freevnode(struct vnode *vp)
{
	cache_purge(vp);
	sx_destroy(&vp->v_lock);
	uma_zfree(vnode_zone, vp);
}

void
vref(struct vnode *vp)
{
	vp->v_usecount++;
}

void
vrele(struct vnode *vp)
{
	KASSERT(vp->v_usecount > 0, ("vrele: no reference"));
	if (--vp->v_usecount == 0)
		VOP_INACTIVE(vp);
}

int
vn_lock(struct vnode *vp)
{
	return (sx_xlock(&vp->v_lock));
}

void
VOP_UNLOCK(struct vnode *vp)
{
	sx_xunlock(&vp->v_lock);
}

/* Unlocks and releases. */
void
vput(struct vnode *vp)
{
	VOP_UNLOCK(vp);
	vrele(vp);
}

/* An operation a file system does not have. */
int
vop_einval(void)
{
	return (EINVAL);
}
