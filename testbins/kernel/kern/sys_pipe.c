/* Pipes: a buffer that one end fills and the other empties (FreeBSD sys/kern/sys_pipe.c). */
#include "sys/file.h"
#include "sys/malloc.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vm.h"

#define PIPE_SIZE 4096
#define PIPE_BUF 512 /* a write of this or less is not mixed with others */

struct pipe {
	struct mtx pipe_mtx;
	char *pipe_buffer;
	unsigned pipe_in, pipe_out, pipe_cnt;
	bool pipe_reader, pipe_writer; /* the ends still open */
};

MALLOC_DEFINE(M_PIPE, "pipe", "pipe buffers");
static uma_zone_t pipe_zone;
static const struct fileops pipeops;

static void
pipeinit(const void *unused __unused)
{
	pipe_zone = uma_zcreate("pipe", sizeof(struct pipe));
}
SYSINIT(pipeinit, SI_SUB_VFS, SI_ORDER_ANY, pipeinit, NULL);

static struct pipe *
pipe_create(void)
{
	struct pipe *pipe = uma_zalloc(pipe_zone, M_WAITOK);

	if (pipe == NULL)
		return (NULL);
	bzero(pipe, sizeof(*pipe));
	mtx_init(&pipe->pipe_mtx, "pipe mutex", NULL, MTX_DEF);
	pipe->pipe_buffer = malloc(PIPE_SIZE, M_PIPE, M_WAITOK);
	pipe->pipe_reader = pipe->pipe_writer = true;
	return (pipe);
}

/* n bytes into the ring, which may go round its end; there is room for them. */
static int
pipe_copy_in(struct pipe *pipe, size_t n, struct uio *uio)
{
	size_t first = MIN(n, PIPE_SIZE - pipe->pipe_in);
	int error = uiomove(pipe->pipe_buffer + pipe->pipe_in, first, uio);

	if (error == 0 && n > first)
		error = uiomove(pipe->pipe_buffer, n - first, uio);
	if (error == 0) {
		pipe->pipe_in = (pipe->pipe_in + n) % PIPE_SIZE;
		pipe->pipe_cnt += n;
	}
	return (error);
}

static int
pipe_copy_out(struct pipe *pipe, size_t n, struct uio *uio)
{
	size_t first = MIN(n, PIPE_SIZE - pipe->pipe_out);
	int error = uiomove(pipe->pipe_buffer + pipe->pipe_out, first, uio);

	if (error == 0 && n > first)
		error = uiomove(pipe->pipe_buffer, n - first, uio);
	if (error == 0) {
		pipe->pipe_out = (pipe->pipe_out + n) % PIPE_SIZE;
		pipe->pipe_cnt -= n;
	}
	return (error);
}

/* Waits for bytes, then takes those available; 0 bytes when there are no writers. */
static int
pipe_read(struct file *fp, struct uio *uio, struct thread *td __unused)
{
	struct pipe *rpipe = fp->f_data;
	int error = 0;

	mtx_lock(&rpipe->pipe_mtx);
	while (rpipe->pipe_cnt == 0 && rpipe->pipe_writer && error == 0)
		error = fp->f_flag & O_NONBLOCK ? EAGAIN : msleep(rpipe, &rpipe->pipe_mtx, PCATCH, "piperd", 0);
	if (error == 0 && rpipe->pipe_cnt > 0) {
		error = pipe_copy_out(rpipe, MIN(rpipe->pipe_cnt, uio->uio_resid), uio);
		wakeup(rpipe);
	}
	mtx_unlock(&rpipe->pipe_mtx);
	return (error);
}

static int
pipe_write(struct file *fp, struct uio *uio, struct thread *td __unused)
{
	struct pipe *wpipe = fp->f_data;
	size_t wanted = uio->uio_resid <= PIPE_BUF ? uio->uio_resid : 1, n;
	int error = 0;

	mtx_lock(&wpipe->pipe_mtx);
	while (uio->uio_resid > 0 && error == 0) {
		if (!wpipe->pipe_reader) {
			error = EPIPE;
			break;
		}
		n = PIPE_SIZE - wpipe->pipe_cnt;
		if (n >= wanted) {
			error = pipe_copy_in(wpipe, MIN(n, uio->uio_resid), uio);
			wakeup(wpipe);
		} else
			error = fp->f_flag & O_NONBLOCK ? EAGAIN : msleep(wpipe, &wpipe->pipe_mtx, PCATCH, "pipewr", 0);
	}
	mtx_unlock(&wpipe->pipe_mtx);
	return (error);
}

static int
pipe_stat(struct file *fp, struct stat *sb, struct thread *td __unused)
{
	struct pipe *pipe = fp->f_data;

	sb->st_mode = S_IFIFO | 0600;
	sb->st_size = pipe->pipe_cnt;
	sb->st_blksize = PIPE_SIZE;
	return (0);
}

/* One end closes; with the other the pipe goes. */
static void
pipeclose(struct pipe *pipe, bool reader)
{
	mtx_lock(&pipe->pipe_mtx);
	if (reader)
		pipe->pipe_reader = false;
	else
		pipe->pipe_writer = false;
	wakeup(pipe);
	mtx_unlock(&pipe->pipe_mtx);
	if (!pipe->pipe_reader && !pipe->pipe_writer) {
		free(pipe->pipe_buffer, M_PIPE);
		mtx_destroy(&pipe->pipe_mtx);
		uma_zfree(pipe_zone, pipe);
	}
}

static int
pipe_close(struct file *fp, struct thread *td __unused)
{
	pipeclose(fp->f_data, fp->f_flag & FREAD);
	return (0);
}

static const struct fileops pipeops = {
	.fo_read = pipe_read,
	.fo_write = pipe_write,
	.fo_truncate = invfo_truncate,
	.fo_ioctl = invfo_ioctl,
	.fo_stat = pipe_stat,
	.fo_close = pipe_close,
};

static int
kern_pipe(struct thread *td, int fildes[2], int flags)
{
	struct file *rf, *wf;
	struct pipe *pipe;
	int error;

	if ((error = falloc(td, &rf, &fildes[0], flags)) != 0)
		return (error);
	if ((error = falloc(td, &wf, &fildes[1], flags)) != 0) {
		fdclose(td, rf, fildes[0]);
		fdrop(rf, td);
		return (error);
	}
	if ((pipe = pipe_create()) == NULL) {
		fdclose(td, rf, fildes[0]);
		fdclose(td, wf, fildes[1]);
		error = ENFILE;
	} else {
		finit(rf, FREAD | (flags & O_NONBLOCK), DTYPE_PIPE, pipe, &pipeops);
		finit(wf, FWRITE | (flags & O_NONBLOCK), DTYPE_PIPE, pipe, &pipeops);
	}
	fdrop(rf, td);
	fdrop(wf, td);
	return (error);
}

int
sys_pipe2(struct thread *td, struct pipe2_args *uap)
{
	int fildes[2], error;

	if (uap->flags & ~(O_CLOEXEC | O_NONBLOCK))
		return (EINVAL);
	if ((error = kern_pipe(td, fildes, uap->flags)) != 0)
		return (error);
	if ((error = copyout(fildes, uap->fildes, sizeof(fildes))) != 0) {
		kern_close(td, fildes[0]);
		kern_close(td, fildes[1]);
	}
	return (error);
}
