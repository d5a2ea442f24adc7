/* Transfers between a program and a disk, with no cache between (FreeBSD sys/kern/kern_physio.c, vfs_bio.c). */
#include "sys/bio.h"
#include "sys/malloc.h"
#include "sys/systm.h"
#include "sys/uio.h"

#define MAXPHYS PAGE_SIZE

MALLOC_DEFINE(M_BIOBUF, "biobuf", "BIO buffer");
static struct mtx bdonelock = MTX_INITIALIZER("bio done", MTX_DEF);

/* A driver is through with a transfer. */
void
biodone(struct bio *bp)
{
	bp->bio_completed = bp->bio_length - bp->bio_resid;
	devstat_end_transaction_bio(&bp->bio_disk->d_devstat, bp);
	mtx_lock(&bdonelock);
	bp->bio_flags |= BIO_DONE;
	mtx_unlock(&bdonelock);
	wakeup(bp);
}

int
biowait(struct bio *bp)
{
	devstat_wait_start(&bp->bio_disk->d_devstat);
	mtx_lock(&bdonelock);
	while (!(bp->bio_flags & BIO_DONE))
		msleep(bp, &bdonelock, 0, "biord", 0);
	mtx_unlock(&bdonelock);
	devstat_wait_done(&bp->bio_disk->d_devstat);
	return (bp->bio_flags & BIO_ERROR ? bp->bio_error : 0);
}

/* One piece of a read or write; the driver works in another address space, so by way of a buffer. */
static int
physio_piece(struct disk *dp, struct uio *uio, void *buffer, size_t size)
{
	struct bio bio = { .bio_disk = dp, .bio_offset = uio->uio_offset, .bio_bcount = size, .bio_data = buffer,
		.bio_length = size, .bio_pblkno = uio->uio_offset / dp->d_devstat.block_size,
		.bio_resid = size, .bio_caller1 = curthread->td_fpop };
	int error;

	bio.bio_cmd = uio->uio_rw == UIO_READ ? BIO_READ : BIO_WRITE;
	if (uio->uio_rw == UIO_WRITE) {
		if ((error = uiomove(buffer, size, uio)) != 0)
			return (error);
	}
	devstat_start_transaction_bio(&dp->d_devstat, &bio);
	dp->d_strategy(&bio);
	if ((error = biowait(&bio)) == 0 && uio->uio_rw == UIO_READ)
		error = uiomove(buffer, size - bio.bio_resid, uio);
	return (error);
}

/* Whole blocks only. A read ends with the disk; a write past it fails. */
int
physio(struct disk *dp, struct uio *uio)
{
	uint32_t block = dp->d_devstat.block_size;
	void *buffer;
	int error = 0;

	if (uio->uio_offset % block != 0 || uio->uio_resid % block != 0)
		return (EINVAL);
	buffer = malloc(MAXPHYS, M_BIOBUF, M_WAITOK);
	while (uio->uio_resid > 0 && error == 0) {
		off_t left = dp->d_mediasize - uio->uio_offset;

		if (left <= 0) {
			error = uio->uio_rw == UIO_WRITE ? ENOSPC : 0;
			break;
		}
		error = physio_piece(dp, uio, buffer, MIN(MIN(uio->uio_resid, MAXPHYS), (size_t)left));
	}
	free(buffer, M_BIOBUF);
	return (error);
}
