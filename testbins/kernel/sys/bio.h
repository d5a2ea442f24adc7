/* Transfers between memory and a device of blocks, and the books kept of them (FreeBSD sys/sys/bio.h, devicestat.h). */
#ifndef SYS_BIO_H
#define SYS_BIO_H

#include "sys/queue.h"
#include "sys/types.h"

#define BIO_READ 0x01
#define BIO_WRITE 0x02
#define BIO_ERROR 0x01 /* bio_flags: bio_error says which */
#define BIO_DONE 0x02

struct bio {
	uint16_t bio_cmd;
	uint16_t bio_flags;
	struct disk *bio_disk;
	off_t bio_offset;
	long bio_bcount; /* bytes wanted */
	void *bio_data;
	int bio_error;
	long bio_resid; /* bytes left out */
	off_t bio_length; /* as bio_bcount: this is the disk's own request */
	off_t bio_completed;
	int64_t bio_pblkno; /* of the disk's own blocks */
	void *bio_caller1; /* for the caller's own use */
	TAILQ_ENTRY(bio) bio_queue;
};

#define DEVSTAT_NAME_LEN 16
#define DEVSTAT_TYPE_DIRECT 0x000
#define DEVSTAT_TYPE_IF_OTHER 0x020
enum devstat_trans_flags { DEVSTAT_NO_DATA, DEVSTAT_READ, DEVSTAT_WRITE, DEVSTAT_FREE, DEVSTAT_N_TRANS_FLAGS };

struct devstat {
	uint32_t start_count;
	uint32_t end_count;
	uint32_t device_number;
	char device_name[DEVSTAT_NAME_LEN];
	int unit_number;
	uint64_t bytes[DEVSTAT_N_TRANS_FLAGS];
	uint64_t operations[DEVSTAT_N_TRANS_FLAGS];
	uint32_t block_size;
	uint32_t device_type;
};

struct disk {
	void (*d_strategy)(struct bio *bp); /* starts a transfer; biodone() ends it */
	struct devstat d_devstat;
	off_t d_mediasize;
};

struct uio;

/* subr_devstat.c */
void devstat_new_entry(struct devstat *ds, const char *name, int unit, uint32_t block_size);
void devstat_start_transaction_bio(struct devstat *ds, struct bio *bp);
void devstat_end_transaction_bio(struct devstat *ds, struct bio *bp);
void devstat_wait_start(struct devstat *ds);
void devstat_wait_done(struct devstat *ds);

/* kern_physio.c */
void biodone(struct bio *bp);
int biowait(struct bio *bp);
int physio(struct disk *dp, struct uio *uio);

#endif
