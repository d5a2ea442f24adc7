/* The memory file system's own structures. */
#ifndef SYS_MEMFS_H
#define SYS_MEMFS_H

#include "sys/malloc.h"
#include "sys/vnode.h"

struct memfs_dirent {
	TAILQ_ENTRY(memfs_dirent) md_entries;
	struct memfs_node *md_node;
	uint64_t md_cookie; /* where getdirentries continues: increases in a directory */
	uint8_t md_namelen;
	char md_name[];
};

/* A file. Its vnode lives as long as it does, and holds it: v_data. */
struct memfs_node {
	struct vnode *mn_vnode;
	ino_t mn_id;
	mode_t mn_mode;
	uid_t mn_uid;
	gid_t mn_gid;
	uint32_t mn_links;
	off_t mn_size;
	uint64_t mn_mtime;
	/* a file */
	paddr_t *mn_pages; /* 0: a hole */
	size_t mn_npages;  /* slots of mn_pages */
	/* a directory */
	struct memfs_node *mn_parent;
	uint64_t mn_cookie;
	TAILQ_HEAD(, memfs_dirent) mn_dirhead;
};

#define VP_TO_MEMFS_NODE(vp) ((struct memfs_node *)(vp)->v_data)

MALLOC_DECLARE(M_MEMFS);
extern const struct vop_vector memfs_vnodeop_entries;

int memfs_alloc_node(enum vtype type, mode_t mode, struct memfs_node *parent, struct memfs_node **node);
void memfs_free_node(struct memfs_node *node);
struct memfs_dirent *memfs_dir_lookup(struct memfs_node *dir, const char *name, size_t namelen);
void memfs_dir_attach(struct memfs_node *dir, struct memfs_node *node, const char *name, size_t namelen);
void memfs_dir_detach(struct memfs_node *dir, struct memfs_dirent *de);
int memfs_reg_resize(struct memfs_node *node, off_t size);
paddr_t memfs_reg_page(struct memfs_node *node, off_t offset, bool make);

#endif
