/* Callouts, kept in the order of their ticks (FreeBSD sys/kern/kern_timeout.c). */
#include "sys/callout.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(callout_execute);
SDT_PROBE_DEFINE1(callout_execute, , , callout__start, "struct callout *");
SDT_PROBE_DEFINE1(callout_execute, , , callout__end, "struct callout *");

static TAILQ_HEAD(, callout) callout_queue = TAILQ_HEAD_INITIALIZER(callout_queue);
static struct mtx callout_lock = MTX_INITIALIZER("callout", MTX_SPIN);

void
callout_init(struct callout *c, int mpsafe __unused)
{
	bzero(c, sizeof(*c));
}

/* Calls function(arg) to_ticks from now, at least one; returns 1 if it was to be called already. */
int
callout_reset(struct callout *c, int to_ticks, void (*function)(void *), void *arg)
{
	int cancelled = callout_stop(c);
	struct callout *other;

	mtx_lock_spin(&callout_lock);
	c->c_time = ticks + MAX(to_ticks, 1);
	c->c_func = function;
	c->c_arg = arg;
	c->c_pending = true;
	TAILQ_FOREACH(other, &callout_queue, c_links)
		if (other->c_time > c->c_time)
			break;
	if (other != NULL)
		TAILQ_INSERT_BEFORE(other, c, c_links);
	else
		TAILQ_INSERT_TAIL(&callout_queue, c, c_links);
	mtx_unlock_spin(&callout_lock);
	return (cancelled);
}

int
callout_stop(struct callout *c)
{
	if (!c->c_pending)
		return (0);
	mtx_lock_spin(&callout_lock);
	TAILQ_REMOVE(&callout_queue, c, c_links);
	c->c_pending = false;
	mtx_unlock_spin(&callout_lock);
	return (1);
}

/* Calls the functions whose time has come. */
void
callout_process(uint64_t now)
{
	struct callout *c;

	while ((c = TAILQ_FIRST(&callout_queue)) != NULL && c->c_time <= now) {
		callout_stop(c);
		SDT_PROBE1(callout_execute, , , callout__start, c);
		c->c_func(c->c_arg);
		SDT_PROBE1(callout_execute, , , callout__end, c);
	}
}
