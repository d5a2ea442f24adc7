/*
 * Code is written in steps, and after each of them all CPUs fetch anew (Linux arch/x86/kernel/alternative.c). The
 * machine knows the bytes of the steps: here it is told when each has its turn. It also takes the breakpoint that is
 * there meanwhile.
 */
#include "smp/smp.h"
#include "sys/systm.h"

/* Discards what this CPU has fetched. */
static void
do_sync_core(void *unused __unused)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned eax = 1, ebx, ecx = 0, edx;

	__asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx) : : "memory");
#elif defined(__aarch64__)
	__asm volatile("isb" ::: "memory");
#else
	__asm volatile("fence.i" ::: "memory");
#endif
}

static void
text_poke_sync(void)
{
	smp_call_all(do_sync_core, NULL);
}

void
smp_text_poke_batch_finish(int steps)
{
	for (int step = 0; step < steps; step++) {
		gate_text_poke(step);
		text_poke_sync();
	}
}
