/* Sleeping, waking, switching (FreeBSD sys/kern/kern_synch.c). */
#include "sys/cpuvar.h"
#include "sys/sdt.h"
#include "sys/sysproto.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE(sched, , , preempt);

/*
 * Sleeps until wakeup(ident), or timo ticks (0: no limit), or with PCATCH a signal.
 * The mutex is given up meanwhile.
 */
int
_sleep(const void *ident, struct mtx *lock, int priority, const char *wmesg, int timo)
{
	int error;

	KASSERT(panicstr == NULL, ("sleep after panic"));
	KASSERT(!(curthread->td_flags & TDF_IDLETD), ("the idle thread sleeps on %s", wmesg));
	sleepq_add(ident, wmesg, priority & PCATCH);
	if (timo != 0)
		sleepq_set_timeout(ident, timo);
	if (lock != NULL)
		mtx_unlock(lock);
	error = sleepq_wait(ident);
	if (lock != NULL)
		mtx_lock(lock);
	return (error);
}

int
pause(const char *wmesg, int timo)
{
	static const char pause_wchan;

	return (_sleep(&pause_wchan, NULL, 0, wmesg, timo));
}

void
wakeup(const void *ident)
{
	sleepq_broadcast(ident);
}

void
wakeup_one(const void *ident)
{
	sleepq_signal(ident);
}

/* Gives the CPU to the next thread; comes back when this one is chosen again. */
void
mi_switch(int flags)
{
	struct thread *td = curthread;
	uint64_t now = nanouptime();

	KASSERT(td->td_locks == 0 || td->td_state == TDS_INHIBITED, ("mi_switch with %d mutexes held", td->td_locks));
	if (flags & SW_INVOL) {
		CPU_STATS_ADD(sysinfo, inv_swtch, 1);
		SDT_PROBE0(sched, , , preempt);
	}
	td->td_runtime += now - td->td_switched_in;
	sched_switch(td, flags);
	curthread->td_switched_in = nanouptime();
}

void
setrunnable(struct thread *td)
{
	td->td_state = TDS_CAN_RUN;
	sched_wakeup(td);
}

void
maybe_yield(void)
{
	if (curthread->td_flags & TDF_NEEDRESCHED)
		sched_relinquish(curthread);
}

int
sys_sched_yield(struct thread *td, struct sched_yield_args *uap __unused)
{
	sched_relinquish(td);
	return (0);
}
