#!/usr/sbin/dtrace -s
/* translate.d - a stable view of a request, by a translator. */
#pragma D option quiet

typedef struct request {
	int rq_fd;
	uint64_t rq_size;
	string rq_kind;
} request_t;

translator request_t < struct read_args *A > {
	rq_fd = A->fd;
	rq_size = A->nbyte;
	rq_kind = A->nbyte > 100 ? "bulk" : "crumbs";
};

fbt::sys_read:entry
{
	this->size = xlate <request_t *> (args[1])->rq_size;
	@[xlate <request_t> (args[1]).rq_kind, xlate <request_t> (args[1]).rq_fd] = sum(this->size);
}

END { printa("%s on %d: %@d\n", @); }
