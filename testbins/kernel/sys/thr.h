/* Threads as programs make them, and what they wait on (FreeBSD sys/sys/thr.h, umtx.h). */
#ifndef SYS_THR_H
#define SYS_THR_H

#include "sys/types.h"

struct thr_param {
	void (*start_func)(void *);
	void *arg;
	char *stack_base; /* lowest address */
	size_t stack_size;
	char *tls_base;	  /* not used: a thread finds its own data by its stack */
	size_t tls_size;
	long *child_tid, *parent_tid;
	int flags;
	void *rtp;
};

#define UMTX_OP_WAIT_UINT_PRIVATE 15 /* sleep while the word is val */
#define UMTX_OP_WAKE_PRIVATE 16	     /* wake at most val */

#endif
