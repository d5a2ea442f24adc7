/* The name cache: (directory, name) to vnode, or to nothing (FreeBSD sys/kern/vfs_cache.c). */
#include "sys/malloc.h"
#include "sys/sdt.h"
#include "sys/systm.h"
#include "sys/vnode.h"

SDT_PROVIDER_DECLARE(vfs);
SDT_PROBE_DEFINE3(vfs, namecache, enter, done, "struct vnode *", "char *", "struct vnode *");
SDT_PROBE_DEFINE2(vfs, namecache, enter_negative, done, "struct vnode *", "char *");
SDT_PROBE_DEFINE3(vfs, namecache, lookup, hit, "struct vnode *", "char *", "struct vnode *");
SDT_PROBE_DEFINE2(vfs, namecache, lookup, hit__negative, "struct vnode *", "char *");
SDT_PROBE_DEFINE2(vfs, namecache, lookup, miss, "struct vnode *", "char *");
SDT_PROBE_DEFINE1(vfs, namecache, purge, done, "struct vnode *");
SDT_PROBE_DEFINE1(vfs, namecache, purge_negative, done, "struct vnode *");
SDT_PROBE_DEFINE3(vfs, namecache, zap, done, "struct vnode *", "char *", "struct vnode *");
SDT_PROBE_DEFINE2(vfs, namecache, zap_negative, done, "struct vnode *", "char *");

MALLOC_DEFINE(M_VFSCACHE, "vfscache", "VFS name cache entries");

#define NCHASH 128
#define NCMAX 256 /* then the oldest goes */

static TAILQ_HEAD(nchashhead, namecache) nchashtbl[NCHASH];
static TAILQ_HEAD(, namecache) nclru = TAILQ_HEAD_INITIALIZER(nclru);
static int numcache;
static struct mtx ncache_lock = MTX_INITIALIZER("name cache", MTX_DEF);
struct nchstats { uint64_t ncs_goodhits, ncs_neghits, ncs_miss; } nchstats;

static void
nchinit(const void *unused __unused)
{
	for (int i = 0; i < NCHASH; i++)
		TAILQ_INIT(&nchashtbl[i]);
}
SYSINIT(nchinit, SI_SUB_VFS, SI_ORDER_FIRST, nchinit, NULL);

static struct nchashhead *
cache_get_hash(struct vnode *dvp, const char *name, size_t length)
{
	return (&nchashtbl[hash32_str(name, length, (uint32_t)(uintptr_t)dvp >> 4) % NCHASH]);
}

static struct namecache *
cache_find(struct vnode *dvp, struct componentname *cnp)
{
	struct namecache *ncp;

	TAILQ_FOREACH(ncp, cache_get_hash(dvp, cnp->cn_nameptr, cnp->cn_namelen), nc_hash)
		if (ncp->nc_dvp == dvp && ncp->nc_nlen == cnp->cn_namelen && memcmp(ncp->nc_name, cnp->cn_nameptr, cnp->cn_namelen) == 0)
			return (ncp);
	return (NULL);
}

static void
cache_zap(struct namecache *ncp)
{
	if (ncp->nc_vp != NULL)
		SDT_PROBE3(vfs, namecache, zap, done, ncp->nc_dvp, ncp->nc_name, ncp->nc_vp);
	else
		SDT_PROBE2(vfs, namecache, zap_negative, done, ncp->nc_dvp, ncp->nc_name);
	TAILQ_REMOVE(cache_get_hash(ncp->nc_dvp, ncp->nc_name, ncp->nc_nlen), ncp, nc_hash);
	TAILQ_REMOVE(&ncp->nc_dvp->v_cache_src, ncp, nc_src);
	if (ncp->nc_vp != NULL) {
		TAILQ_REMOVE(&ncp->nc_vp->v_cache_dst, ncp, nc_dst);
		if (ncp->nc_vp->v_cache_dd == ncp)
			ncp->nc_vp->v_cache_dd = NULL;
	}
	TAILQ_REMOVE(&nclru, ncp, nc_lru);
	numcache--;
	free(ncp, M_VFSCACHE);
}

int
cache_lookup(struct vnode *dvp, struct vnode **vpp, struct componentname *cnp)
{
	struct namecache *ncp;
	int error;

	mtx_lock(&ncache_lock);
	ncp = cache_find(dvp, cnp);
	if (ncp == NULL) {
		nchstats.ncs_miss++;
		SDT_PROBE2(vfs, namecache, lookup, miss, dvp, cnp->cn_nameptr);
		error = 0;
	} else if (ncp->nc_vp != NULL) {
		nchstats.ncs_goodhits++;
		*vpp = ncp->nc_vp;
		SDT_PROBE3(vfs, namecache, lookup, hit, dvp, ncp->nc_name, *vpp);
		vref(*vpp);
		error = -1;
	} else {
		nchstats.ncs_neghits++;
		SDT_PROBE2(vfs, namecache, lookup, hit__negative, dvp, ncp->nc_name);
		error = ENOENT;
	}
	mtx_unlock(&ncache_lock);
	return (error);
}

/* vp NULL: a negative entry. */
void
cache_enter(struct vnode *dvp, struct vnode *vp, struct componentname *cnp)
{
	struct namecache *ncp;

	mtx_lock(&ncache_lock);
	if ((ncp = cache_find(dvp, cnp)) != NULL)
		cache_zap(ncp);
	if (numcache >= NCMAX)
		cache_zap(TAILQ_FIRST(&nclru));
	ncp = malloc(sizeof(*ncp) + cnp->cn_namelen + 1, M_VFSCACHE, M_WAITOK);
	ncp->nc_dvp = dvp;
	ncp->nc_vp = vp;
	ncp->nc_nlen = cnp->cn_namelen;
	memcpy(ncp->nc_name, cnp->cn_nameptr, cnp->cn_namelen);
	ncp->nc_name[cnp->cn_namelen] = '\0';
	TAILQ_INSERT_HEAD(cache_get_hash(dvp, cnp->cn_nameptr, cnp->cn_namelen), ncp, nc_hash);
	TAILQ_INSERT_HEAD(&dvp->v_cache_src, ncp, nc_src);
	if (vp != NULL) {
		TAILQ_INSERT_HEAD(&vp->v_cache_dst, ncp, nc_dst);
		if (vp->v_type == VDIR)
			vp->v_cache_dd = ncp;
	}
	TAILQ_INSERT_TAIL(&nclru, ncp, nc_lru);
	numcache++;
	if (vp != NULL)
		SDT_PROBE3(vfs, namecache, enter, done, dvp, ncp->nc_name, vp);
	else
		SDT_PROBE2(vfs, namecache, enter_negative, done, dvp, ncp->nc_name);
	mtx_unlock(&ncache_lock);
}

/* The vnode is gone, or goes by another name: every entry that has it in it. */
void
cache_purge(struct vnode *vp)
{
	SDT_PROBE1(vfs, namecache, purge, done, vp);
	mtx_lock(&ncache_lock);
	while (!TAILQ_EMPTY(&vp->v_cache_src))
		cache_zap(TAILQ_FIRST(&vp->v_cache_src));
	while (!TAILQ_EMPTY(&vp->v_cache_dst))
		cache_zap(TAILQ_FIRST(&vp->v_cache_dst));
	mtx_unlock(&ncache_lock);
}

/* A name was added to the directory: forget the names that were known to be missing. */
void
cache_purge_negative(struct vnode *dvp)
{
	struct namecache *ncp, *next;

	SDT_PROBE1(vfs, namecache, purge_negative, done, dvp);
	mtx_lock(&ncache_lock);
	TAILQ_FOREACH_SAFE(ncp, &dvp->v_cache_src, nc_src, next)
		if (ncp->nc_vp == NULL)
			cache_zap(ncp);
	mtx_unlock(&ncache_lock);
}
