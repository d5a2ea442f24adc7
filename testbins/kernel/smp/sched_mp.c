/*
 * The scheduler of several CPUs: a queue for each, round robin, a slice of SCHED_SLICE ticks; a CPU without work takes
 * a thread from the longest queue of another (FreeBSD sys/kern/sched_ule.c, tdq_idled()).
 */
#include "smp/smp.h"
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

/* The queue of a CPU, under its lock; its threads can run, and no CPU runs them. */
static struct tdq {
	struct mtx tdq_lock;
	TAILQ_HEAD(, thread) tdq_runq;
	int tdq_load;			/* threads on the queue */
	volatile bool tdq_sleeps;	/* the CPU has found nothing to do, and waits for an interrupt */
	struct thread *tdq_idlethread;
} tdq_cpu[MAXCPU];

static void
sched_setup(const void *unused __unused)
{
	for (int cpu = 0; cpu < MAXCPU; cpu++) {
		mtx_init(&tdq_cpu[cpu].tdq_lock, "sched lock", NULL, MTX_SPIN);
		TAILQ_INIT(&tdq_cpu[cpu].tdq_runq);
	}
}
SYSINIT(sched_setup, SI_SUB_VM, SI_ORDER_FIRST, sched_setup, NULL);

/* A CPU that sleeps, or the one with the shortest queue; of equals the next one after this CPU. */
static int
sched_pickcpu(void)
{
	int best = curcpu, least = tdq_cpu[curcpu].tdq_load;

	for (int i = 0; i < mp_ncpus; i++) {
		int cpu = (curcpu + i) % mp_ncpus;

		if (tdq_cpu[cpu].tdq_sleeps && tdq_cpu[cpu].tdq_load == 0)
			return (cpu);
		if (tdq_cpu[cpu].tdq_load < least) {
			best = cpu;
			least = tdq_cpu[cpu].tdq_load;
		}
	}
	return (best);
}

/* Apart from tdq_insert: a branch there would become part of what its probes do, during which time stands still. */
static void __noinline
tdq_enqueue(struct tdq *tdq, struct thread *td, bool first)
{
	if (first)
		TAILQ_INSERT_HEAD(&tdq->tdq_runq, td, td_runq);
	else
		TAILQ_INSERT_TAIL(&tdq->tdq_runq, td, td_runq);
}

static void
tdq_insert(int cpu, struct thread *td, bool first)
{
	struct tdq *tdq = &tdq_cpu[cpu];

	mtx_lock_spin(&tdq->tdq_lock);
	td->td_state = TDS_RUNQ;
	td->td_switched_in = nanouptime(); /* it cannot run earlier, whatever the time of the CPU that takes it */
	tdq_enqueue(tdq, td, first);
	tdq->tdq_load++;
	SDT_PROBE4(sched, , , enqueue, td, td->td_proc, NULL, 0);
	SDT_PROBE2(sched, , , load__change, cpu, tdq->tdq_load);
	mtx_unlock_spin(&tdq->tdq_lock);
	if (tdq->tdq_sleeps && cpu != curcpu)
		ipi_cpu(cpu);
}

static void
tdq_add(int cpu, struct thread *td)
{
	tdq_insert(cpu, td, false);
}

void
sched_add(struct thread *td)
{
	tdq_add(sched_pickcpu(), td);
}

/* The lock of the queue is held. */
static void
tdq_remove(int cpu, struct thread *td)
{
	struct tdq *tdq = &tdq_cpu[cpu];

	td->td_state = TDS_CAN_RUN;
	TAILQ_REMOVE(&tdq->tdq_runq, td, td_runq);
	tdq->tdq_load--;
	SDT_PROBE3(sched, , , dequeue, td, td->td_proc, NULL);
	SDT_PROBE2(sched, , , load__change, cpu, tdq->tdq_load);
}

void
sched_rem(struct thread *td)
{
	struct thread *other;

	for (int cpu = 0; cpu < mp_ncpus; cpu++) {
		mtx_lock_spin(&tdq_cpu[cpu].tdq_lock);
		TAILQ_FOREACH(other, &tdq_cpu[cpu].tdq_runq, td_runq)
			if (other == td)
				break;
		if (other != NULL)
			tdq_remove(cpu, td);
		mtx_unlock_spin(&tdq_cpu[cpu].tdq_lock);
	}
}

/* Takes the first thread of a queue, NULL if there is none. */
static struct thread *
tdq_take(int cpu)
{
	struct tdq *tdq = &tdq_cpu[cpu];
	struct thread *td;

	mtx_lock_spin(&tdq->tdq_lock);
	td = TAILQ_FIRST(&tdq->tdq_runq);
	if (td != NULL)
		tdq_remove(cpu, td);
	mtx_unlock_spin(&tdq->tdq_lock);
	return (td);
}

/* Moves a thread from the longest queue to this CPU's; says whether there was one. */
static bool
tdq_idled(void)
{
	int longest = -1;
	struct thread *td;

	for (int cpu = 0; cpu < mp_ncpus; cpu++)
		if (cpu != curcpu && tdq_cpu[cpu].tdq_load > (longest < 0 ? 0 : tdq_cpu[longest].tdq_load))
			longest = cpu;
	if (longest < 0 || (td = tdq_take(longest)) == NULL)
		return (false);
	tdq_add(curcpu, td);
	return (true);
}

/* Threads that run or could. */
int
sched_load(void)
{
	int load = 0;

	for (int cpu = 0; cpu < mp_ncpus; cpu++)
		load += tdq_cpu[cpu].tdq_load + !tdq_cpu[cpu].tdq_sleeps;
	return (load);
}

bool
sched_runnable(void)
{
	return (tdq_cpu[curcpu].tdq_load > 0);
}

/* Takes the next thread to run from the queue; the idle thread if the queue is empty. */
struct thread *
sched_choose(void)
{
	struct thread *td = tdq_take(curcpu);

	return (td != NULL ? td : tdq_cpu[curcpu].tdq_idlethread);
}

void
sched_switch(struct thread *td, int flags __unused)
{
	struct thread *newtd;

	td->td_flags &= ~TDF_NEEDRESCHED;
	if (td->td_state == TDS_RUNNING && !(td->td_flags & TDF_IDLETD))
		tdq_add(curcpu, td);
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
	gate_clock_wait(&newtd->td_switched_in); /* it may come from a CPU that is ahead of this one */
	pmap_activate(newtd->td_proc->p_pmap);
	/* The big lock belongs to the CPU: the thread that comes has had it when it went. */
	Giant.mtx_lock = (uintptr_t)newtd;
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

/*
 * A thread that was asleep in the kernel comes before one that is not, so it preempts the thread that has woken it on
 * the same CPU, as in a FreeBSD kernel with FULL_PREEMPTION. Only while that one holds a mutex beside the big lock: all
 * other data of the kernel are the big lock's, whose holder is not preempted.
 */
void
sched_wakeup(struct thread *td)
{
	int cpu = sched_pickcpu();
	bool preempts = cpu == curcpu && curthread->td_locks > 0;

	tdq_insert(cpu, td, preempts);
	if (preempts)
		cpu_self.cp_owepreempt = true;
}

/* The threads that sleep on ident are awake; the first of them may be about to wait for a mutex of this one. */
void __real_wakeup(const void *ident);
void __wrap_wakeup(const void *ident);
void
__wrap_wakeup(const void *ident)
{
	struct thread *td = curthread;
	int locks = td->td_locks;

	cpu_self.cp_owepreempt = false; /* what else wakes threads does not look at it */
	__real_wakeup(ident);
	if (!cpu_self.cp_owepreempt)
		return;
	td->td_locks = 0; /* no mutex may be held asleep, but this thread could run on */
	mi_switch(SW_INVOL);
	td->td_locks = locks;
}

void
sched_relinquish(struct thread *td)
{
	SDT_PROBE2(sched, , , surrender, td, td->td_proc);
	mi_switch(SW_VOL);
}

/* The idle thread of a CPU comes with the big lock, which it gives back while it waits. */
void
sched_idletd(void *unused __unused)
{
	struct tdq *tdq = &tdq_cpu[curcpu];

	for (;;) {
		giant_leave();
		tdq->tdq_sleeps = true;
		while (!sched_runnable() && !tdq_idled())
			cpu_idle();
		tdq->tdq_sleeps = false;
		giant_enter();
		mi_switch(SW_VOL);
	}
}

void
sched_set_idle(int cpu, struct thread *td)
{
	/* Never queued: sched_choose() falls back on it. */
	sched_rem(td);
	td->td_flags |= TDF_IDLETD;
	tdq_cpu[cpu].tdq_idlethread = td;
}

/* The first steps of a further CPU: into its idle thread. */
void
sched_ap_entry(struct thread *idle)
{
	static struct thread before[MAXCPU];

	pcpu0.pc_curthread = idle;
	pcpu0.pc_idlethread = idle;
	giant_enter();
	idle->td_state = TDS_RUNNING;
	idle->td_switched_in = nanouptime();
	pmap_activate(&kernel_pmap);
	cpu_switch(&before[curcpu], idle);
	panic("a CPU is back at its start");
}
