/* The counters of the system, and their probes. */
#include "sys/cpuvar.h"

struct cpu_stats cpu_stats;

SDT_PROVIDER_DEFINE(sysinfo);
SDT_PROVIDER_DEFINE(vminfo);
SDT_PROVIDER_DEFINE(mib);
#define CPU_STATS_PROBE(group, name) SDT_PROBE_DEFINE2(group, , , name, "int", "uint64_t *");
SYSINFO_STATS(CPU_STATS_PROBE)
SYSINFO_NEVER(CPU_STATS_PROBE)
VMINFO_STATS(CPU_STATS_PROBE)
VMINFO_NEVER(CPU_STATS_PROBE)
MIB_STATS(CPU_STATS_PROBE)
MIB_NEVER(CPU_STATS_PROBE)
