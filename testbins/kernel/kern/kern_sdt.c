/* Statically defined tracing: the part that exists without a tracer (FreeBSD sys/kern/kern_sdt.c, sys/cddl/dev/sdt/sdt.c). */
#include "sys/sdt.h"
#include "sys/systm.h"

const int sdt_generation = SDT_GENERATION;
volatile bool sdt_probes_enabled; /* a probe is on somewhere */

/* Nothing is traced, so this must not be called. */
static void
sdt_probe_stub(uint32_t id, uintptr_t arg0 __unused, uintptr_t arg1 __unused, uintptr_t arg2 __unused, uintptr_t arg3 __unused,
    uintptr_t arg4 __unused, uintptr_t arg5 __unused)
{
	printf("sdt_probe_stub: unexpectedly called for probe %u\n", id);
	cpu_stacktrace(NULL);
}

/* The provider of the emulator puts dtrace_probe here, or in the newest generation sdt_dtrace_probe. */
sdt_probe_func_t *sdt_probe_func = sdt_probe_stub;

/* Those that several files have probes of. */
SDT_PROVIDER_DEFINE(proc);
SDT_PROVIDER_DEFINE(sched);
SDT_PROVIDER_DEFINE(vfs);

/* Of what this kernel does not have, priorities and sigwait: they never fire, but scripts name them. */
SDT_PROBE_DEFINE3(sched, , , change__pri, "struct thread *", "struct proc *", "uint8_t");
SDT_PROBE_DEFINE4(sched, , , lend__pri, "struct thread *", "struct proc *", "uint8_t", "struct thread *");
SDT_PROBE_DEFINE2(proc, , , signal__clear, "int", "ksiginfo_t *");

#if SDT_GENERATION == 2024
/* Where the sites of the newest generation go. */
void
sdt_probe(uint32_t id, uintptr_t arg0, uintptr_t arg1, uintptr_t arg2, uintptr_t arg3, uintptr_t arg4, uintptr_t arg5)
{
	(*sdt_probe_func)(id, arg0, arg1, arg2, arg3, arg4, arg5);
}

/* dtrace_probe takes five arguments; the sixth is stored in the thread until it is read. No frame is left behind. */
__attribute__((optimize("optimize-sibling-calls"), used)) static void
sdt_dtrace_probe(uint32_t id, uintptr_t arg0, uintptr_t arg1, uintptr_t arg2, uintptr_t arg3, uintptr_t arg4, uintptr_t arg5)
{
	curthread->td_sdt_arg5 = arg5;
	dtrace_probe(id, arg0, arg1, arg2, arg3, arg4);
}
#endif
