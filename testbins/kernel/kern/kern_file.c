/* sysctl kern.file: the open files of each process (FreeBSD sys/kern/kern_descrip.c, sysctl_kern_file). */
#include "sys/file.h"
#include "sys/sysctl.h"
#include "sys/systm.h"
#include "sys/vnode.h"
#include "sys/xfile.h"

/* Nobody else runs meanwhile: the kernel is not interrupted, and nothing here sleeps. */
static int
file_out(struct sysctl_req *req, const struct proc *p, int fd, const struct file *fp, struct vnode *vp)
{
	struct xfile xf = { .xf_pid = p->p_pid, .xf_uid = p->p_ucred->cr_uid, .xf_fd = fd, .xf_type = DTYPE_VNODE, .xf_flag = FREAD };
	struct stat sb;

	strlcpy(xf.xf_comm, p->p_comm, sizeof(xf.xf_comm));
	if (fp != NULL) {
		xf.xf_type = fp->f_type;
		xf.xf_flag = fp->f_flag & (FREAD | FWRITE);
		xf.xf_data = (uintptr_t)fp->f_data;
	}
	if (vp != NULL && vn_stat(vp, &sb) == 0) {
		xf.xf_mode = sb.st_mode;
		xf.xf_fileid = sb.st_ino;
		xf.xf_size = sb.st_size;
		if (vp->v_rdev != NULL)
			strlcpy(xf.xf_device, vp->v_rdev->si_name, sizeof(xf.xf_device));
	}
	return (SYSCTL_OUT(req, &xf, sizeof(xf)));
}

static int
proc_files(struct sysctl_req *req, const struct proc *p)
{
	const struct filedesc *fdp = p->p_fd;
	int error = 0;

	if (fdp == NULL)
		return (0);
	if (p->p_textvp != NULL)
		error = file_out(req, p, XF_TEXT, NULL, p->p_textvp);
	if (error == 0 && fdp->fd_cdir != NULL)
		error = file_out(req, p, XF_CDIR, NULL, fdp->fd_cdir);
	if (error == 0 && fdp->fd_rdir != NULL)
		error = file_out(req, p, XF_RDIR, NULL, fdp->fd_rdir);
	for (int fd = 0; fd < NOFILE && error == 0; fd++)
		if (fdp->fd_ofiles[fd].fde_file != NULL)
			error = file_out(req, p, fd, fdp->fd_ofiles[fd].fde_file, fdp->fd_ofiles[fd].fde_file->f_vnode);
	return (error);
}

static int
sysctl_kern_file(struct sysctl_req *req)
{
	struct proc *p;
	int error = 0;

	TAILQ_FOREACH(p, &allproc, p_list)
		if (error == 0 && p->p_state == PRS_NORMAL)
			error = proc_files(req, p);
	return (error);
}
SYSCTL_TABLE(file, "kern.file", sysctl_kern_file);
