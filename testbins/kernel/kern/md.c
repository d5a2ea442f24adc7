/* A disk in memory, with a process that does its work (FreeBSD sys/dev/md/md.c). */
#include "sys/bio.h"
#include "sys/systm.h"
#include "sys/vnode.h"

#define MD_SECTORSIZE 512
#define MD_SIZE 0x10000

static uint8_t md_store[MD_SIZE];
static struct mtx md_lock = MTX_INITIALIZER("md bio queue", MTX_DEF);
static TAILQ_HEAD(, bio) md_queue = TAILQ_HEAD_INITIALIZER(md_queue);
static bool md_running; /* the process is there */

static void mdstrategy(struct bio *bp);
static struct disk md_disk = { .d_strategy = mdstrategy, .d_mediasize = MD_SIZE };

static void
mdstart_malloc(struct bio *bp)
{
	uint8_t *place = md_store + bp->bio_offset;

	if (bp->bio_cmd == BIO_READ)
		memcpy(bp->bio_data, place, bp->bio_bcount);
	else
		memcpy(place, bp->bio_data, bp->bio_bcount);
	bp->bio_resid = 0;
}

static void
md_kthread(void *unused __unused)
{
	struct bio *bp;

	for (;;) {
		mtx_lock(&md_lock);
		while ((bp = TAILQ_FIRST(&md_queue)) == NULL)
			msleep(&md_queue, &md_lock, 0, "mdwait", 0);
		TAILQ_REMOVE(&md_queue, bp, bio_queue);
		mtx_unlock(&md_lock);
		mdstart_malloc(bp);
		biodone(bp);
	}
}

static void
mdstrategy(struct bio *bp)
{
	mtx_lock(&md_lock);
	TAILQ_INSERT_TAIL(&md_queue, bp, bio_queue);
	mtx_unlock(&md_lock);
	wakeup(&md_queue);
}

/* The first user starts the process: a machine that never uses the disk has none. */
static int
md_use(void)
{
	if (md_running)
		return (0);
	md_running = true;
	return (kproc_create(md_kthread, NULL, NULL, "md0"));
}

static int
md_rdwr(struct cdev *dev __unused, struct uio *uio, int ioflag __unused)
{
	int error = md_use();

	return (error != 0 ? error : physio(&md_disk, uio));
}

static const struct cdevsw md_cdevsw = { .d_name = "md", .d_read = md_rdwr, .d_write = md_rdwr };

static void
md_modevent(const void *unused __unused)
{
	devstat_new_entry(&md_disk.d_devstat, "md", 0, MD_SECTORSIZE);
	make_dev(&md_cdevsw, 6, "md0");
}
SYSINIT(md_modevent, SI_SUB_ROOT, SI_ORDER_ANY, md_modevent, NULL);
