/* What a kernel for several CPUs adds (FreeBSD sys/sys/smp.h, sys/kern/subr_smp.c). */
#ifndef SMP_SMP_H
#define SMP_SMP_H

#include "sys/lock.h"
#include "sys/machine_interface.h"
#include "sys/proc.h"

#define MAXCPU 8

/*
 * Memory of each CPU's own: at one address all CPUs find something else there, as with the private data areas of
 * IRIX. cpu_private[] tells the machine which objects are of this kind; pcpu0 is one of them.
 */
struct cpu_private {
	int cp_cpuid;
	int cp_rendezvous; /* the number of the last one that it took part in */
	bool cp_owepreempt; /* a thread that was woken comes before the current one */
};
extern struct cpu_private cpu_self;
#define curcpu (cpu_self.cp_cpuid)

extern int mp_ncpus;

/* Reasons for an interrupt, as gate_interrupts() tells them. */
#define INTR_CLOCK 0x1
#define INTR_IPI 0x2

/* Sent to a CPU that sleeps, to a thread that has something to do, or to all for a rendezvous. */
void ipi_cpu(int cpu);

#define MTX_NOSLEEP 0x8 /* who waits for it spins, whatever its owner does */

/* The big lock: a CPU holds it while its thread is in the kernel, unless the thread is the idle thread. */
extern struct mtx Giant;
void giant_enter(void);
void giant_leave(void);

/* All CPUs call action(arg) at the same time, with nothing else going on. */
void smp_rendezvous(void (*action)(void *), void *arg);

/* Each CPU calls action(arg) when the interrupt reaches it, and goes on; returns when all have (Linux on_each_cpu). */
void smp_call_all(void (*action)(void *), void *arg);

/* Writes code in steps, each followed by a call of all CPUs. */
void smp_text_poke_batch_finish(int steps);

void sched_ap_entry(struct thread *idle) __dead2;
void sched_set_idle(int cpu, struct thread *td);

extern volatile int smp_rv_number; /* counts them */
void smp_rendezvous_join(void);

/* Every waiting loop calls it: another CPU may have its turn, and a CPU that waits still takes part in a rendezvous. */
static inline void
cpu_spinwait(void)
{
	gate_turn();
	if (cpu_self.cp_rendezvous != smp_rv_number)
		smp_rendezvous_join();
}

static inline bool
atomic_cmpset(volatile uintptr_t *word, uintptr_t old, uintptr_t new)
{
	return (__atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

#endif
