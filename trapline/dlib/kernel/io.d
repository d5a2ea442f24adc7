/* Transfers, devices and open files: what the io provider's arguments translate to, and fds[]. */

#pragma D depends_on module kernel
#pragma D depends_on library iotypes.d

inline int BIO_READ = 0x01;
inline int BIO_WRITE = 0x02;
translator bufinfo_t < struct bio *B > {
	b_cmd = B->bio_cmd;
	b_flags = B->bio_flags | (B->bio_cmd == BIO_READ ? B_READ : B_WRITE);
	b_bcount = B->bio_bcount;
	b_addr = B->bio_data;
	b_blkno = B->bio_offset / 512;
	b_lblkno = B->bio_offset / 512;
	b_resid = B->bio_resid;
	b_bufsize = B->bio_bcount;
	b_error = B->bio_error;
	b_edev = (dev_t)B->bio_disk->d_devstat.device_number << 32 | B->bio_disk->d_devstat.unit_number;
};

translator devinfo_t < struct devstat *D > {
	dev_major = D->device_number;
	dev_minor = D->unit_number;
	dev_instance = D->unit_number;
	dev_type = D->device_type;
	dev_name = stringof(D->device_name);
	dev_statname = strjoin(stringof(D->device_name), lltostr(D->unit_number));
	dev_pathname = strjoin(strjoin("/dev/", stringof(D->device_name)), lltostr(D->unit_number));
};

/*
 * A path by the names last looked up. Of a path deeper than six directories only the end is shown. The joined text
 * grows on the left, so that it takes few registers.
 */
inline struct vnode *__vdir[struct vnode *v] = v->v_cache_dst.tqh_first ? v->v_cache_dst.tqh_first->nc_dvp :
    `rootvnode;
inline struct vnode *__vdir2[struct vnode *v] = __vdir[__vdir[v]];
inline struct vnode *__vdir4[struct vnode *v] = __vdir2[__vdir2[v]];
inline string __vname[struct vnode *v] = v->v_cache_dst.tqh_first ?
    stringof(v->v_cache_dst.tqh_first->nc_name) : "<unknown>";
inline string __vslash[struct vnode *v] = v == `rootvnode ? "" : "/";
inline string __vpart[struct vnode *v] = v == `rootvnode ? "" : __vname[v];
inline string __vpath0[struct vnode *v] = __vdir2[__vdir4[v]] == `rootvnode ? "" : "...";
inline string __vpath1[struct vnode *v] =
    strjoin(strjoin(__vpath0[v], __vslash[__vdir[__vdir4[v]]]), __vpart[__vdir[__vdir4[v]]]);
inline string __vpath2[struct vnode *v] =
    strjoin(strjoin(__vpath1[v], __vslash[__vdir4[v]]), __vpart[__vdir4[v]]);
inline string __vpath3[struct vnode *v] =
    strjoin(strjoin(__vpath2[v], __vslash[__vdir[__vdir2[v]]]), __vpart[__vdir[__vdir2[v]]]);
inline string __vpath4[struct vnode *v] =
    strjoin(strjoin(__vpath3[v], __vslash[__vdir2[v]]), __vpart[__vdir2[v]]);
inline string __vpath5[struct vnode *v] =
    strjoin(strjoin(__vpath4[v], __vslash[__vdir[v]]), __vpart[__vdir[v]]);
inline string __vpath6[struct vnode *v] =
    strjoin(strjoin(__vpath5[v], __vslash[v]), __vpart[v]);
inline string __vpath[struct vnode *v] = v == NULL ? "<unknown>" : v == `rootvnode ? "/" : __vpath6[v];

translator fileinfo_t < struct file *F > {
	fi_name = F == NULL ? "<none>" : F->f_vnode == NULL ? "<unknown>" : __vname[F->f_vnode];
	fi_dirname = F == NULL ? "<none>" : F->f_vnode == NULL ? "<unknown>" : __vpath[__vdir[F->f_vnode]];
	fi_pathname = F == NULL ? "<none>" : __vpath[F->f_vnode];
	fi_offset = F == NULL ? 0 : F->f_offset;
	fi_fs = F == NULL ? "<none>" : F->f_vnode == NULL ? "<none>" : F->f_vnode->v_type == VCHR ? "devfs" : "memfs";
	fi_mount = "/";
	fi_oflags = F == NULL ? 0 : F->f_flag;
};

translator fileinfo_t < struct vnode *V > {
	fi_name = V == NULL ? "<none>" : __vname[V];
	fi_dirname = V == NULL ? "<none>" : __vpath[__vdir[V]];
	fi_pathname = V == NULL ? "<none>" : __vpath[V];
	fi_offset = 0; /* the vnode does not say: 0 on illumos as well */
	fi_fs = V == NULL ? "<none>" : V->v_type == VCHR ? "devfs" : "memfs";
	fi_mount = "/";
	fi_oflags = 0;
};

/* Files by the names that illumos has for their members, args[0]->v_path (threads.d). */
typedef struct vnode_names {
	char *v_path;
	struct mount *v_vfsp;
	int v_count;
} vnode_names_t;

translator vnode_names_t < struct vnode *V > {
	v_path = __vpath[V];
	v_vfsp = V->v_mount;
	v_count = V->v_usecount;
};

inline fileinfo_t fds[int fd] = xlate <fileinfo_t> (fd >= 0 && fd < 32 ?
    curthread->td_proc->p_fd->fd_ofiles[fd].fde_file : NULL);

inline string cwd = __vpath[curthread->td_proc->p_fd->fd_cdir];
inline string root = __vpath[curthread->td_proc->p_fd->fd_rdir];
