/*
 * The types of the io provider's arguments, and of fds[]. Each guest has its own translators to them: a member that a
 * guest's translator leaves out cannot be used there.
 */

#pragma D depends_on library types.d

/* illumos' names. The values are FreeBSD's of bio_flags where it has the same, and the others are none of FreeBSD's. */
inline int B_ERROR = 0x0001;
inline int B_DONE = 0x0002;
inline int B_READ = 0x10000;
inline int B_WRITE = 0x20000;
/* Flags that no transfer of the kernel guest has: asynchronous, raw, of pages. */
inline int B_ASYNC = 0x40000;
inline int B_PAGEIO = 0x80000;
inline int B_PHYS = 0x100000;

typedef struct bufinfo {
	int b_cmd;		/* BIO_READ, BIO_WRITE */
	int b_flags;		/* B_READ or B_WRITE, B_DONE, B_ERROR */
	long b_bcount;		/* bytes wanted */
	void *b_addr;
	uint64_t b_blkno;	/* in blocks of 512 bytes */
	uint64_t b_lblkno;
	size_t b_resid;		/* bytes left out */
	size_t b_bufsize;
	int b_error;
	dev_t b_edev;		/* of the device: getmajor() and getminor() split it */
	void *b_iodone;		/* called at the end */
} bufinfo_t;

typedef struct devinfo {
	int dev_major;
	int dev_minor;
	int dev_instance;
	int dev_type;
	string dev_name;	/* of the driver */
	string dev_statname;	/* of the driver, and which of its devices */
	string dev_pathname;
} devinfo_t;

typedef struct fileinfo {
	string fi_name;		/* its name as it was last looked up */
	string fi_dirname;	/* path of its directory */
	string fi_pathname;
	int64_t fi_offset;
	string fi_fs;
	string fi_mount;
	int fi_oflags;		/* FREAD, FWRITE and the flags of open(2) */
} fileinfo_t;
