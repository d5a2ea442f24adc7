/* The books of devices, and the probes of their transfers (FreeBSD sys/kern/subr_devstat.c). */
#include "sys/bio.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(io);
/* The third argument is illumos's and NetBSD's, not FreeBSD's: the open file that the transfer is for. */
SDT_PROBE_DEFINE3(io, , , start, "struct bio *", "struct devstat *", "struct file *");
SDT_PROBE_DEFINE3(io, , , done, "struct bio *", "struct devstat *", "struct file *");
SDT_PROBE_DEFINE3(io, , , wait__start, "struct bio *", "struct devstat *", "struct file *");
SDT_PROBE_DEFINE3(io, , , wait__done, "struct bio *", "struct devstat *", "struct file *");

void
devstat_new_entry(struct devstat *ds, const char *name, int unit, uint32_t block_size)
{
	static uint32_t devices;

	*ds = (struct devstat){ .device_number = devices++, .unit_number = unit, .block_size = block_size };
	ds->device_type = DEVSTAT_TYPE_DIRECT;
	strlcpy(ds->device_name, name, sizeof(ds->device_name));
}

void
devstat_start_transaction_bio(struct devstat *ds, struct bio *bp)
{
	ds->start_count++;
	SDT_PROBE3(io, , , start, bp, ds, bp->bio_caller1);
}

void
devstat_end_transaction_bio(struct devstat *ds, struct bio *bp)
{
	enum devstat_trans_flags kind = bp->bio_cmd == BIO_READ ? DEVSTAT_READ : DEVSTAT_WRITE;

	ds->bytes[kind] += bp->bio_bcount - bp->bio_resid;
	ds->operations[kind]++;
	ds->end_count++;
	SDT_PROBE3(io, , , done, bp, ds, bp->bio_caller1);
}

/* A thread waits for a transfer; the caller does not say for which. */
void
devstat_wait_start(struct devstat *ds)
{
	SDT_PROBE3(io, , , wait__start, NULL, ds, curthread->td_fpop);
}

void
devstat_wait_done(struct devstat *ds)
{
	SDT_PROBE3(io, , , wait__done, NULL, ds, curthread->td_fpop);
}
