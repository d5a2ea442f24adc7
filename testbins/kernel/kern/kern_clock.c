/* The clock interrupt (FreeBSD sys/kern/kern_clock.c). */
#include "sys/random.h"
#include "sys/sdt.h"
#include "sys/systm.h"

SDT_PROVIDER_DECLARE(sched);
SDT_PROBE_DEFINE2(sched, , , tick, "struct thread *", "struct proc *");

volatile uint64_t ticks;

static void
initclocks(const void *unused __unused)
{
	gate_clock_start(1000000000 / hz);
}
SYSINIT(initclocks, SI_SUB_CLOCKS, SI_ORDER_FIRST, initclocks, NULL);

static void
hardclock_cnt(struct thread *td)
{
	ticks++;
	tc_windup();
	loadav();
	sched_clock(td);
	SDT_PROBE2(sched, , , tick, td, td->td_proc);
	callout_process(ticks);
}

void
hardclock(struct trapframe *frame)
{
	struct thread *td = curthread;
	uint64_t pc = frame_pc(frame);

	td->td_intr_nesting_level++;
	hardclock_cnt(td);
	random_harvest_queue(&pc, sizeof(pc), RANDOM_INTERRUPT);
	td->td_intr_nesting_level--;
	if (frame_is_user(frame))
		userret(td, frame);
}

uint64_t
nanouptime(void)
{
	return (gate_nanouptime());
}

/* Ticks that cover a time: rounded up, and one more for the tick under way. */
int
tvtohz_ns(uint64_t nanoseconds)
{
	uint64_t tick = 1000000000 / hz, n = (nanoseconds + tick - 1) / tick + 1;

	return (MIN(n, 0x7fffffff));
}
