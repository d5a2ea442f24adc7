/* The root file system: made from the initrd, a cpio archive in the "newc" format. */
#include "sys/file.h"
#include "sys/memfs.h"
#include "sys/systm.h"
#include "sys/vm.h"

struct vnode *rootvnode;

static const char *initrd_archive;
static size_t initrd_size;

/* kmain says where it is, before there is any memory to unpack it to. */
void
memfs_set_initrd(paddr_t start, size_t size)
{
	initrd_archive = PHYS_TO_DMAP(start);
	initrd_size = size;
}

struct cpio_newc_header { /* all fields after the magic are eight hexadecimal digits */
	char c_magic[6];
	char c_ino[8], c_mode[8], c_uid[8], c_gid[8], c_nlink[8], c_mtime[8], c_filesize[8];
	char c_devmajor[8], c_devminor[8], c_rdevmajor[8], c_rdevminor[8], c_namesize[8], c_check[8];
};

static uint32_t
cpio_hex(const char *field)
{
	uint32_t value = 0;

	for (int i = 0; i < 8; i++) {
		char c = field[i];

		value = value << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return (value);
}

/* Makes path and its parent directories; an existing one is returned unchanged. */
int
memfs_mkpath(const char *path, enum vtype type, mode_t mode, struct vnode **vpp)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(rootvnode), *node = dir;
	struct memfs_dirent *de;
	const char *end;
	int error;

	for (;; path = end) {
		while (*path == '/' || (*path == '.' && (path[1] == '/' || path[1] == '\0')))
			path++;
		if (*path == '\0')
			break;
		for (end = path; *end != '/' && *end != '\0'; end++)
			continue;
		dir = node;
		if ((de = memfs_dir_lookup(dir, path, end - path)) != NULL) {
			node = de->md_node;
			continue;
		}
		error = memfs_alloc_node(*end == '\0' ? type : VDIR, *end == '\0' ? mode : 0755, NULL, &node);
		if (error != 0)
			return (error);
		memfs_dir_attach(dir, node, path, end - path);
		vrele(node->mn_vnode); /* the name keeps it */
	}
	*vpp = node->mn_vnode;
	return (0);
}

/* Removes the name; *vpp is what had it, referenced. */
int
memfs_rmpath(const char *path, struct vnode **vpp)
{
	struct memfs_node *dir = VP_TO_MEMFS_NODE(rootvnode);
	struct memfs_dirent *de;
	const char *end;

	for (;; path = end) {
		while (*path == '/')
			path++;
		for (end = path; *end != '/' && *end != '\0'; end++)
			continue;
		if ((de = memfs_dir_lookup(dir, path, end - path)) == NULL)
			return (ENOENT);
		if (*end == '\0')
			break;
		dir = de->md_node;
	}
	*vpp = de->md_node->mn_vnode;
	vref(*vpp);
	memfs_dir_detach(dir, de);
	return (0);
}

static int
memfs_unpack_file(const char *name, mode_t mode, const char *data, size_t size)
{
	bool directory = S_ISDIR(mode);
	struct vnode *vp;
	int error;

	if (!directory && !S_ISREG(mode))
		return (0); /* devices are the kernel's */
	error = memfs_mkpath(name, directory ? VDIR : VREG, mode & 07777, &vp);
	if (error == 0 && size > 0)
		error = vn_rdwr(UIO_WRITE, vp, (void *)data, size, 0, NULL, curthread);
	return (error);
}

/* 0, or EINVAL for an archive that is not one. */
int
memfs_unpack(const char *archive, size_t size)
{
	const struct cpio_newc_header *header;
	const char *name, *data, *end = archive + size;
	size_t namesize, filesize;
	int error;

	for (;;) {
		header = (const struct cpio_newc_header *)archive;
		if (archive + sizeof(*header) > end || memcmp(header->c_magic, "070701", 6) != 0)
			return (EINVAL);
		namesize = cpio_hex(header->c_namesize);
		filesize = cpio_hex(header->c_filesize);
		name = archive + sizeof(*header);
		data = archive + roundup2(sizeof(*header) + namesize, 4);
		if (data + filesize > end)
			return (EINVAL);
		if (strcmp(name, "TRAILER!!!") == 0)
			return (0);
		if ((error = memfs_unpack_file(name, cpio_hex(header->c_mode), data, filesize)) != 0)
			return (error);
		archive = data + roundup2(filesize, 4);
	}
}

static void
vfs_mountroot(const void *unused __unused)
{
	struct memfs_node *root;
	int error;

	if ((error = memfs_alloc_node(VDIR, 0755, NULL, &root)) != 0)
		panic("cannot make the root directory: error %d", error);
	root->mn_links++; /* its own parent: never freed */
	rootvnode = root->mn_vnode;
	if ((error = memfs_unpack(initrd_archive, initrd_size)) != 0)
		panic("cannot unpack the initrd (%zu bytes): error %d", initrd_size, error);
	vm_page_release_range(DMAP_TO_PHYS(initrd_archive), initrd_size);
	vref(rootvnode);
	proc0.p_fd->fd_rdir = rootvnode;
	vref(rootvnode);
	proc0.p_fd->fd_cdir = rootvnode;
}
SYSINIT(vfs_mountroot, SI_SUB_ROOT, SI_ORDER_FIRST, vfs_mountroot, NULL);

/* The path of a directory, from the names in its parents. */
int
vn_getcwd(struct vnode *vp, char *buffer, size_t *length)
{
	struct memfs_node *node = VP_TO_MEMFS_NODE(vp);
	size_t at = PATH_MAX - 1;
	struct memfs_dirent *de;

	buffer[at] = '\0';
	for (; node != node->mn_parent; node = node->mn_parent) {
		TAILQ_FOREACH(de, &node->mn_parent->mn_dirhead, md_entries)
			if (de->md_node == node)
				break;
		if (de == NULL) /* removed while it is in use */
			return (ENOENT);
		if (at < (size_t)de->md_namelen + 1)
			return (ENAMETOOLONG);
		at -= de->md_namelen;
		memcpy(buffer + at, de->md_name, de->md_namelen);
		buffer[--at] = '/';
	}
	if (at == PATH_MAX - 1)
		buffer[--at] = '/';
	*length = PATH_MAX - at;
	memmove(buffer, buffer + at, *length);
	return (0);
}
