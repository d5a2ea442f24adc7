/*
 * What dtrace_subr.c of x86 needs beside freebsd.h: time stamp counters, the start of modules, and
 * the traps that end a probe.  There is one CPU, and its counter needs no correction.
 */
#ifndef TRAPLINE_SUBR_H
#define TRAPLINE_SUBR_H

typedef void (*dtrace_sysinit_t)(void *);
/* The functions are kept; nothing calls them, because no module is started. */
#define SYSINIT(name, subsystem, order, function, argument) \
	static const dtrace_sysinit_t name##_sysinit __attribute__((used)) = (dtrace_sysinit_t)(function)

#define MAXCPU 1
#define NANOSEC 1000000000
#define CPU_FOREACH(cpu) for ((cpu) = 0; (cpu) < MAXCPU; (cpu)++)
#define CPU_SET(cpu, set) ((set)->bits[0] |= 1ull << (cpu))
struct pcpu {
	u_int pc_cpuid;
};
struct pcpu *pcpu_find(u_int);
#define PCPU_GET(member) curcpu
#define sched_pin() ((void)0)
#define sched_unpin() ((void)0)

enum { VM_GUEST_NO };
extern int vm_guest;
extern uint64_t tsc_freq;
#define atomic_load_acq_64(place) (*(volatile uint64_t *)(place))

static inline uint64_t
rdtsc(void)
{
	return __builtin_ia32_rdtsc();
}

#define PSL_I 0x200
/* Interrupts are off in a probe. */
#define read_rflags() ((register_t)0)
#define read_eflags() ((register_t)0)
#define T_PROTFLT 9
#define T_PAGEFLT 12
#define CPU_DTRACE_ILLOP 0x0020
u_int rcr2(void);

extern int la57;
extern char addr_P4Tmap[], addr_P5Tmap[];

#endif
