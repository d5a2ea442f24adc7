/* Files in memory: their nodes, directories and pages (in the manner of FreeBSD's sys/fs/tmpfs/tmpfs_subr.c). */
#include "sys/memfs.h"
#include "sys/systm.h"
#include "sys/vm.h"

MALLOC_DEFINE(M_MEMFS, "memfs", "memory file system structures");

static uma_zone_t memfs_node_zone;
static ino_t lastino = 1;

static void
memfs_init(const void *unused __unused)
{
	memfs_node_zone = uma_zcreate("MEMFS node", sizeof(struct memfs_node));
}
SYSINIT(memfs_init, SI_SUB_VFS, SI_ORDER_SECOND, memfs_init, NULL);

/* A node without a name yet; its vnode has one reference. parent is for directories. */
int
memfs_alloc_node(enum vtype type, mode_t mode, struct memfs_node *parent, struct memfs_node **result)
{
	struct memfs_node *node = uma_zalloc(memfs_node_zone, M_WAITOK);

	if (node == NULL)
		return (ENOSPC);
	bzero(node, sizeof(*node));
	if ((node->mn_vnode = getnewvnode(type, type == VCHR ? &devfs_specops : &memfs_vnodeop_entries, node)) == NULL) {
		uma_zfree(memfs_node_zone, node);
		return (ENOSPC);
	}
	TAILQ_INIT(&node->mn_dirhead);
	node->mn_id = ++lastino;
	node->mn_mode = mode;
	node->mn_uid = curproc->p_ucred->cr_uid;
	node->mn_gid = curproc->p_ucred->cr_gid;
	node->mn_mtime = nanouptime();
	node->mn_parent = parent != NULL ? parent : node;
	if (type == VDIR)
		node->mn_links = 1; /* "." */
	*result = node;
	return (0);
}

/* No name, no user: it goes, with its vnode. */
void
memfs_free_node(struct memfs_node *node)
{
	memfs_reg_resize(node, 0);
	free(node->mn_pages, M_MEMFS);
	freevnode(node->mn_vnode);
	uma_zfree(memfs_node_zone, node);
}

struct memfs_dirent *
memfs_dir_lookup(struct memfs_node *dir, const char *name, size_t namelen)
{
	struct memfs_dirent *de;

	TAILQ_FOREACH(de, &dir->mn_dirhead, md_entries)
		if (de->md_namelen == namelen && memcmp(de->md_name, name, namelen) == 0)
			return (de);
	return (NULL);
}

void
memfs_dir_attach(struct memfs_node *dir, struct memfs_node *node, const char *name, size_t namelen)
{
	struct memfs_dirent *de = malloc(sizeof(*de) + namelen + 1, M_MEMFS, M_WAITOK);

	de->md_node = node;
	de->md_cookie = ++dir->mn_cookie;
	de->md_namelen = namelen;
	memcpy(de->md_name, name, namelen);
	de->md_name[namelen] = '\0';
	TAILQ_INSERT_TAIL(&dir->mn_dirhead, de, md_entries);
	node->mn_links++;
	if (node->mn_vnode->v_type == VDIR) {
		node->mn_parent = dir;
		dir->mn_links++; /* ".." */
	}
	dir->mn_size += sizeof(*de) + namelen;
	dir->mn_mtime = nanouptime();
	cache_purge_negative(dir->mn_vnode);
}

void
memfs_dir_detach(struct memfs_node *dir, struct memfs_dirent *de)
{
	struct memfs_node *node = de->md_node;

	TAILQ_REMOVE(&dir->mn_dirhead, de, md_entries);
	node->mn_links--;
	if (node->mn_vnode->v_type == VDIR)
		dir->mn_links--;
	dir->mn_size -= sizeof(*de) + de->md_namelen;
	dir->mn_mtime = nanouptime();
	free(de, M_MEMFS);
	cache_purge(node->mn_vnode);
}

/* Room for the slots of a file of that many pages. */
static int
memfs_reg_grow_slots(struct memfs_node *node, size_t npages)
{
	size_t slots = MAX(node->mn_npages * 2, MAX(npages, 4));
	paddr_t *pages;

	if (npages <= node->mn_npages)
		return (0);
	if ((pages = malloc(slots * sizeof(*pages), M_MEMFS, M_NOWAIT | M_ZERO)) == NULL)
		return (ENOSPC);
	if (node->mn_pages != NULL)
		memcpy(pages, node->mn_pages, node->mn_npages * sizeof(*pages));
	free(node->mn_pages, M_MEMFS);
	node->mn_pages = pages;
	node->mn_npages = slots;
	return (0);
}

/* Cuts the file off, or lengthens it by a hole. */
int
memfs_reg_resize(struct memfs_node *node, off_t size)
{
	size_t keep = roundup2(size, PAGE_SIZE) >> PAGE_SHIFT;
	paddr_t page;
	int error;

	if ((error = memfs_reg_grow_slots(node, keep)) != 0)
		return (error);
	for (size_t i = keep; i < node->mn_npages; i++)
		if (node->mn_pages[i] != 0) {
			vm_page_unref(node->mn_pages[i]);
			node->mn_pages[i] = 0;
		}
	/* What follows the end of the last page is zero, should the file grow again. */
	if (size < node->mn_size && (size & PAGE_MASK) != 0 && (page = memfs_reg_page(node, size, false)) != 0)
		bzero((char *)PHYS_TO_DMAP(page) + (size & PAGE_MASK), PAGE_SIZE - (size & PAGE_MASK));
	node->mn_size = size;
	node->mn_mtime = nanouptime();
	return (0);
}

/*
 * The page at offset: 0 in a hole, unless one is to be made there, and then without memory.
 * It is the page programs map, so a write is seen by all who have not written to it themselves.
 */
paddr_t
memfs_reg_page(struct memfs_node *node, off_t offset, bool make)
{
	size_t index = offset >> PAGE_SHIFT;

	if (index >= node->mn_npages)
		return (0);
	if (node->mn_pages[index] == 0 && make)
		node->mn_pages[index] = vm_page_alloc();
	return (node->mn_pages[index]);
}
