/*
 * What the system counts, and the probes that fire where it does: sysinfo and vminfo (illumos
 * usr/src/uts/common/sys/cpuvar.h, sysinfo.h), and mib, the counters of the network (inet/mib2.h). arg0 is what is
 * added, arg1 points at the counter before the addition. Those of _NEVER have a probe, as scripts name them, and stay 0:
 * there is no swap, nothing is paged out, and no packet is lost or overtaken.
 */
#ifndef SYS_CPUVAR_H
#define SYS_CPUVAR_H

#include "sys/sdt.h"

#define SYSINFO_STATS(STAT) \
	STAT(sysinfo, idlethread) STAT(sysinfo, inv_swtch) STAT(sysinfo, modload) STAT(sysinfo, namei) \
	STAT(sysinfo, pswitch) STAT(sysinfo, readch) STAT(sysinfo, sysexec) STAT(sysinfo, sysfork) \
	STAT(sysinfo, sysread) STAT(sysinfo, sysvfork) STAT(sysinfo, syswrite) STAT(sysinfo, trap) STAT(sysinfo, writech)
#define SYSINFO_NEVER(STAT) \
	STAT(sysinfo, bawrite) STAT(sysinfo, bread) STAT(sysinfo, bwrite) STAT(sysinfo, intrblk) STAT(sysinfo, lread) \
	STAT(sysinfo, lwrite) STAT(sysinfo, modunload) STAT(sysinfo, msg) STAT(sysinfo, mutex_adenters) \
	STAT(sysinfo, nthreads) STAT(sysinfo, phread) STAT(sysinfo, phwrite) STAT(sysinfo, procovf) \
	STAT(sysinfo, rw_rdfails) STAT(sysinfo, rw_wrfails) STAT(sysinfo, sema) STAT(sysinfo, xcalls)
#define VMINFO_STATS(STAT) \
	STAT(vminfo, as_fault) STAT(vminfo, cow_fault) STAT(vminfo, execpgin) STAT(vminfo, pgfrec) STAT(vminfo, prot_fault) \
	STAT(vminfo, zfod)
#define VMINFO_NEVER(STAT) \
	STAT(vminfo, anonfree) STAT(vminfo, anonpgin) STAT(vminfo, anonpgout) STAT(vminfo, dfree) STAT(vminfo, execfree) \
	STAT(vminfo, execpgout) STAT(vminfo, fsfree) STAT(vminfo, fspgin) STAT(vminfo, fspgout) STAT(vminfo, hat_fault) \
	STAT(vminfo, kernel_asflt) STAT(vminfo, maj_fault) STAT(vminfo, pgin) STAT(vminfo, pgout) STAT(vminfo, pgpgin) \
	STAT(vminfo, pgpgout) STAT(vminfo, pgrec) STAT(vminfo, pgrrun) STAT(vminfo, rev) STAT(vminfo, scan) \
	STAT(vminfo, softlock)
#define MIB_STATS(STAT) \
	STAT(mib, ipIfStatsHCInDelivers) STAT(mib, ipIfStatsHCInOctets) STAT(mib, ipIfStatsHCInReceives) \
	STAT(mib, ipIfStatsHCOutOctets) STAT(mib, ipIfStatsHCOutTransmits) STAT(mib, ipIfStatsInCksumErrs) \
	STAT(mib, ipIfStatsInUnknownProtos) STAT(mib, ipIfStatsOutDiscards) \
	STAT(mib, tcpActiveOpens) STAT(mib, tcpAttemptFails) STAT(mib, tcpEstabResets) STAT(mib, tcpHCInSegs) \
	STAT(mib, tcpHCOutSegs) STAT(mib, tcpInAckBytes) STAT(mib, tcpInAckSegs) STAT(mib, tcpInClosed) \
	STAT(mib, tcpInDataInorderBytes) STAT(mib, tcpInDataInorderSegs) STAT(mib, tcpInErrs) STAT(mib, tcpListenDrop) \
	STAT(mib, tcpOutAck) STAT(mib, tcpOutControl) STAT(mib, tcpOutDataBytes) STAT(mib, tcpOutDataSegs) \
	STAT(mib, tcpOutRsts) STAT(mib, tcpPassiveOpens) \
	STAT(mib, udpHCInDatagrams) STAT(mib, udpHCOutDatagrams) STAT(mib, udpInCksumErrs) STAT(mib, udpInErrors) \
	STAT(mib, udpInOverflows) STAT(mib, udpNoPorts)
#define MIB_NEVER(STAT) \
	STAT(mib, ipIfStatsInDiscards) STAT(mib, tcpHalfOpenDrop) STAT(mib, tcpInDataDupBytes) STAT(mib, tcpInDataDupSegs) \
	STAT(mib, tcpInDataUnorderBytes) STAT(mib, tcpInDataUnorderSegs) STAT(mib, tcpInDupAck) \
	STAT(mib, tcpOutFastRetrans) STAT(mib, tcpRetransBytes) STAT(mib, tcpRetransSegs) STAT(mib, tcpTimRetrans) \
	STAT(mib, tcpTimRetransDrop) STAT(mib, udpOutErrors)

#define CPU_STATS_COUNTER(group, name) uint64_t name;
struct cpu_stats {
	struct { SYSINFO_STATS(CPU_STATS_COUNTER) } sysinfo;
	struct { VMINFO_STATS(CPU_STATS_COUNTER) } vminfo;
	struct { MIB_STATS(CPU_STATS_COUNTER) } mib;
};
extern struct cpu_stats cpu_stats;

#define CPU_STATS_DECLARE(group, name) SDT_PROBE_DECLARE(group, , , name);
SYSINFO_STATS(CPU_STATS_DECLARE)
VMINFO_STATS(CPU_STATS_DECLARE)
MIB_STATS(CPU_STATS_DECLARE)

#define CPU_STATS_ADD(group, name, n)                                        \
	do {                                                                 \
		SDT_PROBE2(group, , , name, n, &cpu_stats.group.name);       \
		cpu_stats.group.name += (n);                                 \
	} while (0)

#endif
