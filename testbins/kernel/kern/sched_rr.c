/* The scheduler: one queue, round robin, a slice of SCHED_SLICE ticks (the functions of FreeBSD's sched_4bsd.c). */
#include "sys/cpuvar.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE4(sched, , , enqueue, "struct thread *", "struct proc *", "void *", "int");
SDT_PROBE_DEFINE3(sched, , , dequeue, "struct thread *", "struct proc *", "void *");
SDT_PROBE_DEFINE2(sched, , , load__change, "int", "int");
SDT_PROBE_DEFINE2(sched, , , off__cpu, "struct thread *", "struct proc *");
SDT_PROBE_DEFINE(sched, , , on__cpu);
SDT_PROBE_DEFINE(sched, , , remain__cpu);
SDT_PROBE_DEFINE2(sched, , , surrender, "struct thread *", "struct proc *");

static struct tdq {
	TAILQ_HEAD(, thread) tdq_runq;
	int tdq_load; /* threads on the queue */
} tdq_cpu[1] = { { TAILQ_HEAD_INITIALIZER(tdq_cpu[0].tdq_runq), 0 } };
static struct mtx sched_lock = MTX_INITIALIZER("sched lock", MTX_SPIN);

void
sched_add(struct thread *td)
{
	mtx_lock_spin(&sched_lock);
	td->td_state = TDS_RUNQ;
	TAILQ_INSERT_TAIL(&tdq_cpu[0].tdq_runq, td, td_runq);
	tdq_cpu[0].tdq_load++;
	SDT_PROBE4(sched, , , enqueue, td, td->td_proc, NULL, 0);
	SDT_PROBE2(sched, , , load__change, 0, tdq_cpu[0].tdq_load);
	mtx_unlock_spin(&sched_lock);
}

void
sched_rem(struct thread *td)
{
	mtx_lock_spin(&sched_lock);
	td->td_state = TDS_CAN_RUN;
	TAILQ_REMOVE(&tdq_cpu[0].tdq_runq, td, td_runq);
	tdq_cpu[0].tdq_load--;
	SDT_PROBE3(sched, , , dequeue, td, td->td_proc, NULL);
	SDT_PROBE2(sched, , , load__change, 0, tdq_cpu[0].tdq_load);
	mtx_unlock_spin(&sched_lock);
}

/* Threads that run or could. */
int
sched_load(void)
{
	return (tdq_cpu[0].tdq_load + !(curthread->td_flags & TDF_IDLETD));
}

bool
sched_runnable(void)
{
	return (!TAILQ_EMPTY(&tdq_cpu[0].tdq_runq));
}

/* Takes the next thread to run from the queue; the idle thread if the queue is empty. */
struct thread *
sched_choose(void)
{
	struct thread *td = TAILQ_FIRST(&tdq_cpu[0].tdq_runq);

	if (td == NULL)
		return (pcpu0.pc_idlethread);
	sched_rem(td);
	return (td);
}

void
sched_switch(struct thread *td, int flags __unused)
{
	struct thread *newtd;

	td->td_flags &= ~TDF_NEEDRESCHED;
	if (td->td_state == TDS_RUNNING && !(td->td_flags & TDF_IDLETD))
		sched_add(td);
	newtd = sched_choose();
	newtd->td_state = TDS_RUNNING;
	newtd->td_slice = SCHED_SLICE;
	if (newtd == td) {
		SDT_PROBE0(sched, , , remain__cpu);
		return;
	}
	CPU_STATS_ADD(sysinfo, pswitch, 1);
	if (newtd->td_flags & TDF_IDLETD)
		CPU_STATS_ADD(sysinfo, idlethread, 1);
	SDT_PROBE2(sched, , , off__cpu, newtd, newtd->td_proc);
	pmap_activate(newtd->td_proc->p_pmap);
	cpu_switch(td, newtd);
	SDT_PROBE0(sched, , , on__cpu);
}

/* One tick has gone by while td ran. */
void
sched_clock(struct thread *td)
{
	if (!(td->td_flags & TDF_IDLETD) && --td->td_slice <= 0)
		td->td_flags |= TDF_NEEDRESCHED;
}

void
sched_wakeup(struct thread *td)
{
	sched_add(td);
}

void
sched_relinquish(struct thread *td)
{
	SDT_PROBE2(sched, , , surrender, td, td->td_proc);
	mi_switch(SW_VOL);
}

void
sched_idletd(void *unused __unused)
{
	curthread->td_flags |= TDF_IDLETD;
	pcpu0.pc_idlethread = curthread;
	for (;;) {
		while (!sched_runnable())
			cpu_idle();
		mi_switch(SW_VOL);
	}
}

static void
idle_setup(const void *unused __unused)
{
	struct proc *p;

	if (kproc_create(sched_idletd, NULL, &p, "idle") != 0)
		panic("cannot create the idle process");
	/* Never queued: sched_choose() falls back on it. */
	sched_rem(p->p_threads);
	p->p_threads->td_flags |= TDF_IDLETD;
	pcpu0.pc_idlethread = p->p_threads;
}
SYSINIT(idle_setup, SI_SUB_KTHREAD_IDLE, SI_ORDER_FIRST, idle_setup, NULL);
