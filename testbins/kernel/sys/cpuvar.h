/*
 * What the system counts, and the probes that fire where it does (illumos usr/src/uts/common/sys/cpuvar.h, sysinfo.h):
 * sysinfo and vminfo. arg0 is what is added, arg1 points at the counter before the addition.
 */
#ifndef SYS_CPUVAR_H
#define SYS_CPUVAR_H

#include "sys/sdt.h"

#define SYSINFO_STATS(STAT) \
	STAT(sysinfo, idlethread) STAT(sysinfo, inv_swtch) STAT(sysinfo, modload) STAT(sysinfo, namei) \
	STAT(sysinfo, pswitch) STAT(sysinfo, readch) STAT(sysinfo, sysexec) STAT(sysinfo, sysfork) \
	STAT(sysinfo, sysread) STAT(sysinfo, sysvfork) STAT(sysinfo, syswrite) STAT(sysinfo, trap) STAT(sysinfo, writech)
#define VMINFO_STATS(STAT) \
	STAT(vminfo, as_fault) STAT(vminfo, cow_fault) STAT(vminfo, execpgin) STAT(vminfo, pgfrec) STAT(vminfo, prot_fault) \
	STAT(vminfo, zfod)

#define CPU_STATS_COUNTER(group, name) uint64_t name;
struct cpu_stats {
	struct { SYSINFO_STATS(CPU_STATS_COUNTER) } sysinfo;
	struct { VMINFO_STATS(CPU_STATS_COUNTER) } vminfo;
};
extern struct cpu_stats cpu_stats;

#define CPU_STATS_DECLARE(group, name) SDT_PROBE_DECLARE(group, , , name);
SYSINFO_STATS(CPU_STATS_DECLARE)
VMINFO_STATS(CPU_STATS_DECLARE)

#define CPU_STATS_ADD(group, name, n)                                        \
	do {                                                                 \
		SDT_PROBE2(group, , , name, n, &cpu_stats.group.name);       \
		cpu_stats.group.name += (n);                                 \
	} while (0)

#endif
