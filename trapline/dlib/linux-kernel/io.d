/* Transfers, devices and open files of a Linux kernel: what the io provider's arguments translate to, and fds[]. */

#pragma D depends_on module kernel
#pragma D depends_on library iotypes.d

/* Odd operations write (enum req_op, linux/blk_types.h). */
translator bufinfo_t < struct bio *B > {
	b_flags = (B->bi_opf & 1 ? B_WRITE : B_READ) | (B->bi_status ? B_ERROR : 0);
	b_bcount = B->bi_iter.bi_size;
	b_blkno = B->bi_iter.bi_sector;
	b_lblkno = B->bi_iter.bi_sector;
	b_bufsize = B->bi_iter.bi_size;
	b_error = B->bi_status;
	b_edev = B->bi_bdev ? B->bi_bdev->bd_dev : 0;
	b_iodone = B->bi_end_io;
};

translator devinfo_t < struct bio *B > {
	dev_major = B->bi_bdev ? B->bi_bdev->bd_dev >> 20 : 0;
	dev_minor = B->bi_bdev ? B->bi_bdev->bd_dev & 0xfffff : 0;
	dev_name = B->bi_bdev ? stringof(B->bi_bdev->bd_disk->disk_name) : "<none>";
	dev_statname = B->bi_bdev ? stringof(B->bi_bdev->bd_disk->disk_name) : "<none>";
	dev_pathname = B->bi_bdev ? strjoin("/dev/", stringof(B->bi_bdev->bd_disk->disk_name)) : "<unknown>";
};

/* A path by the names of directory entries; of a path deeper than six directories only the end is shown. */
inline struct dentry *__dup[struct dentry *d] = d->d_parent;
inline struct dentry *__dup2[struct dentry *d] = d->d_parent->d_parent;
inline struct dentry *__dup4[struct dentry *d] = d->d_parent->d_parent->d_parent->d_parent;
inline string __dpart[struct dentry *d] = d == d->d_parent ? "" : strjoin("/", stringof(d->d_name.name));
inline string __dpath1[struct dentry *d] =
    strjoin(strjoin(__dup2[__dup4[d]] == __dup[__dup2[__dup4[d]]] ? "" : "...", __dpart[__dup[__dup4[d]]]),
    __dpart[__dup4[d]]);
inline string __dpath2[struct dentry *d] = strjoin(__dpath1[d], __dpart[__dup[__dup2[d]]]);
inline string __dpath3[struct dentry *d] = strjoin(__dpath2[d], __dpart[__dup2[d]]);
inline string __dpath4[struct dentry *d] = strjoin(__dpath3[d], __dpart[__dup[d]]);
inline string __dpath[struct dentry *d] = d == d->d_parent ? "/" : strjoin(__dpath4[d], __dpart[d]);

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : stringof(F->f_path.dentry->d_name.name);
	fi_dirname = F == NULL ? "<none>" : __dpath[F->f_path.dentry->d_parent];
	fi_pathname = F == NULL ? "<none>" : __dpath[F->f_path.dentry];
	fi_offset = F == NULL ? 0 : F->f_pos;
	fi_fs = F == NULL ? "<none>" : stringof(F->f_inode->i_sb->s_type->name);
	fi_mount = "<unknown>";
	fi_oflags = F == NULL ? 0 : F->f_flags;
};

/* Which file a transfer belongs to is not known. */
translator fileinfo_t < struct bio *B > {
	fi_name = "<unknown>";
	fi_dirname = "<unknown>";
	fi_pathname = "<unknown>";
	fi_offset = 0;
	fi_fs = "<unknown>";
	fi_mount = "<unknown>";
	fi_oflags = 0;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (fd >= 0 && fd < curthread->files->fdt->max_fds ?
    curthread->files->fdt->fd[fd] : NULL);

inline string cwd = __dpath[curthread->fs->pwd.dentry];
inline string root = __dpath[curthread->fs->root.dentry];
