/* Threads that wait for an address to be woken (FreeBSD sys/kern/subr_sleepqueue.c). */
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE(sched, , , sleep);
SDT_PROBE_DEFINE2(sched, , , wakeup, "struct thread *", "struct proc *");

#define SC_TABLESIZE 64
#define SC_HASH(wc) (((uintptr_t)(wc) >> 8 ^ (uintptr_t)(wc) >> 4) & (SC_TABLESIZE - 1))

TAILQ_HEAD(sleepqueue, thread);
static struct {
	struct mtx lock;
	struct sleepqueue queue;
} sleepq_chains[SC_TABLESIZE];

static void sleepq_timeout(void *arg);
static void sleepq_resume_thread(struct thread *td, int error);

static void
init_sleepqueues(const void *unused __unused)
{
	for (int i = 0; i < SC_TABLESIZE; i++) {
		mtx_init(&sleepq_chains[i].lock, "sleepq chain", NULL, MTX_SPIN);
		TAILQ_INIT(&sleepq_chains[i].queue);
	}
}
SYSINIT(init_sleepqueues, SI_SUB_VM, SI_ORDER_FIRST, init_sleepqueues, NULL);

/* Puts curthread on the queue of wchan; the caller then calls sleepq_wait. */
void
sleepq_add(const void *wchan, const char *wmesg, int catch)
{
	struct thread *td = curthread;
	unsigned chain = SC_HASH(wchan);

	mtx_lock_spin(&sleepq_chains[chain].lock);
	td->td_wchan = wchan;
	td->td_wmesg = wmesg;
	td->td_sleep_error = 0;
	td->td_flags |= TDF_SLEEPING | (catch ? TDF_SINTR : 0);
	TAILQ_INSERT_TAIL(&sleepq_chains[chain].queue, td, td_slpq);
	mtx_unlock_spin(&sleepq_chains[chain].lock);
}

void
sleepq_set_timeout(const void *wchan __unused, int timo)
{
	callout_reset(&curthread->td_slpcallout, timo, sleepq_timeout, curthread);
}

/* Sleeps; returns 0, EWOULDBLOCK, EINTR or ERESTART as the one who ended the sleep said. */
int
sleepq_wait(const void *wchan __unused)
{
	struct thread *td = curthread;
	int sig;

	if (td->td_flags & TDF_SINTR && (sig = cursig(td)) != 0)
		sleepq_resume_thread(td, sig_intr(td->td_proc, sig));
	if (td->td_flags & TDF_SINTR && thread_must_exit(td))
		sleepq_resume_thread(td, EINTR);
	if (td->td_flags & TDF_SLEEPING) {
		SDT_PROBE0(sched, , , sleep);
		td->td_state = TDS_INHIBITED;
		mi_switch(SW_VOL);
	}
	td->td_state = TDS_RUNNING;
	callout_stop(&td->td_slpcallout);
	return (td->td_sleep_error);
}

/* Takes a thread off its queue. If it has switched away already, it can run again. */
static void
sleepq_resume_thread(struct thread *td, int error)
{
	unsigned chain = SC_HASH(td->td_wchan);

	mtx_lock_spin(&sleepq_chains[chain].lock);
	TAILQ_REMOVE(&sleepq_chains[chain].queue, td, td_slpq);
	mtx_unlock_spin(&sleepq_chains[chain].lock);
	td->td_wchan = NULL;
	td->td_wmesg = NULL;
	td->td_sleep_error = error;
	td->td_flags &= ~(TDF_SLEEPING | TDF_SINTR);
	SDT_PROBE2(sched, , , wakeup, td, td->td_proc);
	if (td->td_state == TDS_INHIBITED)
		setrunnable(td);
}

void
sleepq_broadcast(const void *wchan)
{
	struct thread *td, *next;

	TAILQ_FOREACH_SAFE(td, &sleepq_chains[SC_HASH(wchan)].queue, td_slpq, next)
		if (td->td_wchan == wchan)
			sleepq_resume_thread(td, 0);
}

void
sleepq_signal(const void *wchan)
{
	struct thread *td;

	TAILQ_FOREACH(td, &sleepq_chains[SC_HASH(wchan)].queue, td_slpq)
		if (td->td_wchan == wchan) {
			sleepq_resume_thread(td, 0);
			return;
		}
}

void
sleepq_remove(struct thread *td, const void *wchan)
{
	if (td->td_flags & TDF_SLEEPING && td->td_wchan == wchan)
		sleepq_resume_thread(td, 0);
}

/* A signal ends the sleep, if it may. */
int
sleepq_abort(struct thread *td, int error)
{
	if (!(td->td_flags & TDF_SLEEPING) || !(td->td_flags & TDF_SINTR))
		return (0);
	sleepq_resume_thread(td, error);
	return (1);
}

static void
sleepq_timeout(void *arg)
{
	struct thread *td = arg;

	if (td->td_flags & TDF_SLEEPING)
		sleepq_resume_thread(td, EWOULDBLOCK);
}
