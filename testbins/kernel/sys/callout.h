/* Functions to be called at a tick (FreeBSD sys/sys/callout.h). */
#ifndef SYS_CALLOUT_H
#define SYS_CALLOUT_H

#include "sys/queue.h"
#include "sys/types.h"

struct callout {
	TAILQ_ENTRY(callout) c_links;
	uint64_t c_time; /* the tick */
	void (*c_func)(void *);
	void *c_arg;
	bool c_pending;
};

void callout_init(struct callout *c, int mpsafe);
int callout_reset(struct callout *c, int to_ticks, void (*function)(void *), void *arg);
int callout_stop(struct callout *c); /* 1 if it was pending */
void callout_process(uint64_t now);

#endif
