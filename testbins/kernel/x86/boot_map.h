/*
 * The boot map of both x86: the first GiB of memory in large pages. Only the one with the text is executable, since a
 * store to a page that may hold code costs an emulator much more than another.
 */
#define PG_PRESENT 0x01
#define PG_WRITE 0x02
#define PG_LARGE 0x80
#define PG_NOT_EXECUTABLE 0x8000000000000000
#define LARGE_PAGE_SIZE 0x200000

	.data
	.balign	PAGE_SIZE
boot_pd:
	.set	physical, 0
	.rept	512
	.if	physical == KERNEL_PHYSICAL
	.quad	physical + PG_PRESENT + PG_WRITE + PG_LARGE
	.else
	.quad	physical + PG_PRESENT + PG_WRITE + PG_LARGE + PG_NOT_EXECUTABLE
	.endif
	.set	physical, physical + LARGE_PAGE_SIZE
	.endr
