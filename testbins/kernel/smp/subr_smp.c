/*
 * Several CPUs (FreeBSD sys/kern/subr_smp.c): the big lock, starting CPUs, interrupts between them.
 *
 * The kernel's parts are written for one CPU. So one CPU at a time executes them: every way into the kernel takes
 * Giant, every way out gives it back, and a CPU that changes threads keeps it. The linker leads these ways through
 * here (--wrap). What runs without it is user code, the idle loop, and the search for threads to run.
 */
#include "smp/smp.h"
#include "sys/lockstat.h"
#include "sys/systm.h"

struct cpu_private cpu_self;
struct mtx Giant = MTX_INITIALIZER("Giant", MTX_DEF | MTX_NOSLEEP);

/* The objects that each CPU has for itself; x86 has its task state segment besides. */
extern char common_tss[] __attribute__((weak));
void *const cpu_private[] = { &pcpu0, &cpu_self, common_tss };
const int cpu_private_count = nitems(cpu_private);

void
giant_enter(void)
{
	mtx_lock(&Giant);
	curthread->td_locks--; /* it may be held asleep */
}

void
giant_leave(void)
{
	curthread->td_locks++;
	mtx_unlock(&Giant);
}

/* What the kernel itself does wrong ends in a panic, with or without the lock. */
#define WRAPPED(name, parameters, arguments)         \
	void __real_##name parameters;               \
	void __wrap_##name parameters;               \
	void __wrap_##name parameters                \
	{                                            \
		if (frame_is_user(frame))            \
			giant_enter();               \
		__real_##name arguments;             \
		if (frame_is_user(frame))            \
			giant_leave();               \
	}

WRAPPED(syscall, (struct trapframe *frame), (frame))
WRAPPED(trap_fault, (struct trapframe *frame, vaddr_t address, int access), (frame, address, access))
WRAPPED(trap_signal, (struct trapframe *frame, int sig, vaddr_t address), (frame, sig, address))

void __real_cpu_user_enter(struct trapframe *frame) __dead2;
void __wrap_cpu_user_enter(struct trapframe *frame) __dead2;
void
__wrap_cpu_user_enter(struct trapframe *frame)
{
	giant_leave();
	__real_cpu_user_enter(frame);
}

/* ---- rendezvous ---- */

static struct mtx smp_ipi_mtx = MTX_INITIALIZER("smp rendezvous", MTX_SPIN);
static void (*volatile smp_rv_action)(void *);
static void *volatile smp_rv_arg;
volatile int smp_rv_number;
static volatile bool smp_rv_together;  /* none begins before all have come */
static volatile int smp_rv_waiters[2]; /* have come; have done it */

static void
smp_rendezvous_action(void)
{
	__atomic_add_fetch(&smp_rv_waiters[0], 1, __ATOMIC_ACQ_REL);
	while (smp_rv_together && smp_rv_waiters[0] < mp_ncpus)
		gate_turn();
	smp_rv_action(smp_rv_arg);
	__atomic_add_fetch(&smp_rv_waiters[1], 1, __ATOMIC_ACQ_REL);
}

/* Another CPU asks for a rendezvous. */
void
smp_rendezvous_join(void)
{
	cpu_self.cp_rendezvous = smp_rv_number;
	smp_rendezvous_action();
}

static void
smp_rendezvous_cpus(void (*action)(void *), void *arg, bool together)
{
	mtx_lock_spin(&smp_ipi_mtx);
	smp_rv_together = together;
	smp_rv_waiters[0] = smp_rv_waiters[1] = 0;
	smp_rv_action = action;
	smp_rv_arg = arg;
	cpu_self.cp_rendezvous = smp_rv_number + 1;
	__atomic_store_n(&smp_rv_number, smp_rv_number + 1, __ATOMIC_RELEASE);
	for (int cpu = 0; cpu < mp_ncpus; cpu++)
		if (cpu != curcpu)
			ipi_cpu(cpu);
	smp_rendezvous_action();
	while (smp_rv_waiters[1] < mp_ncpus)
		gate_turn();
	mtx_unlock_spin(&smp_ipi_mtx);
}

void
smp_rendezvous(void (*action)(void *), void *arg)
{
	smp_rendezvous_cpus(action, arg, true);
}

void
smp_call_all(void (*action)(void *), void *arg)
{
	smp_rendezvous_cpus(action, arg, false);
}

/* ---- interrupts ---- */

void
ipi_cpu(int cpu)
{
	gate_ipi(cpu);
}

/* The ticks of the other CPUs: the time is the first one's. */
static void
hardclock_ap(struct trapframe *frame)
{
	struct thread *td = curthread;

	td->td_intr_nesting_level++;
	sched_clock(td);
	td->td_intr_nesting_level--;
	if (frame_is_user(frame))
		userret(td, frame);
}

void __real_hardclock(struct trapframe *frame);
void __wrap_hardclock(struct trapframe *frame);

/* Every interrupt comes here: the clock's, or another CPU's. */
void
__wrap_hardclock(struct trapframe *frame)
{
	unsigned reasons = gate_interrupts();

	cpu_spinwait();
	if (!(reasons & INTR_CLOCK) && !frame_is_user(frame))
		return; /* it has woken this CPU up, and that is all */
	giant_enter();
	if (!(reasons & INTR_CLOCK))
		userret(curthread, frame);
	else if (curcpu == 0)
		__real_hardclock(frame);
	else
		hardclock_ap(frame);
	giant_leave();
}

/* ---- starting ---- */

static char ap_stacks[MAXCPU][PAGE_SIZE] __attribute__((aligned(16)));
static struct thread *volatile ap_idle[MAXCPU];

static void
init_secondary(uintptr_t cpu)
{
	curcpu = cpu;
	sched_ap_entry(ap_idle[cpu]);
}

static struct thread *
idle_create(int cpu)
{
	struct proc *p;
	char name[MAXCOMLEN + 1];

	snprintf(name, sizeof(name), cpu == 0 ? "idle" : "idle: cpu%d", cpu);
	if (kproc_create(sched_idletd, NULL, &p, name) != 0)
		panic("cannot create an idle process");
	sched_set_idle(cpu, p->p_threads);
	return (p->p_threads);
}

static void
idle_setup(const void *unused __unused)
{
	pcpu0.pc_idlethread = idle_create(0);
}
SYSINIT(idle_setup, SI_SUB_KTHREAD_IDLE, SI_ORDER_FIRST, idle_setup, NULL);

static volatile int smp_started;

static void
ap_started(void *unused __unused)
{
	__atomic_add_fetch(&smp_started, 1, __ATOMIC_ACQ_REL);
}

/* From here on the start-up holds the big lock; it goes on when all CPUs have come to a rendezvous. */
static void
start_aps(const void *unused __unused)
{
	giant_enter();
	int count = gate_cpu_count();

	for (int cpu = 1; cpu < count && cpu < MAXCPU; cpu++)
		ap_idle[cpu] = idle_create(cpu);
	mp_ncpus = MIN(count, MAXCPU);
	for (int cpu = 1; cpu < mp_ncpus; cpu++)
		gate_cpu_start(cpu, (uintptr_t)init_secondary, (uintptr_t)ap_stacks[cpu] + sizeof(ap_stacks[cpu]));
	smp_rendezvous(ap_started, NULL);
	if (smp_started != mp_ncpus)
		panic("%d of %d CPUs came to the rendezvous", smp_started, mp_ncpus);
	printf("SMP: %d CPUs\n", mp_ncpus);
}
SYSINIT(start_aps, SI_SUB_CLOCKS, SI_ORDER_ANY, start_aps, NULL);
