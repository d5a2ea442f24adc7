/* What lockstat needs of the kernel (FreeBSD sys/kern/kern_lockstat.c). The probes are where the locks are. */
#include "sys/lockstat.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(lockstat);

/* Of locks that this kernel does not have: they never fire, but scripts for all of FreeBSD's locks name them. */
SDT_PROBE_DEFINE2(lockstat, , , lockmgr__acquire, "struct lock *", "int");
SDT_PROBE_DEFINE2(lockstat, , , lockmgr__release, "struct lock *", "int");
SDT_PROBE_DEFINE5(lockstat, , , lockmgr__block, "struct lock *", "uint64_t", "int", "int", "int");
SDT_PROBE_DEFINE2(lockstat, , , lockmgr__disown, "struct lock *", "int");
SDT_PROBE_DEFINE1(lockstat, , , lockmgr__upgrade, "struct lock *");
SDT_PROBE_DEFINE1(lockstat, , , lockmgr__downgrade, "struct lock *");
SDT_PROBE_DEFINE2(lockstat, , , rw__acquire, "struct rwlock *", "int");
SDT_PROBE_DEFINE2(lockstat, , , rw__release, "struct rwlock *", "int");
SDT_PROBE_DEFINE5(lockstat, , , rw__block, "struct rwlock *", "uint64_t", "int", "int", "int");
SDT_PROBE_DEFINE2(lockstat, , , rw__spin, "struct rwlock *", "uint64_t");
SDT_PROBE_DEFINE1(lockstat, , , rw__upgrade, "struct rwlock *");
SDT_PROBE_DEFINE1(lockstat, , , rw__downgrade, "struct rwlock *");
SDT_PROBE_DEFINE2(lockstat, , , sx__spin, "struct sx *", "uint64_t");
SDT_PROBE_DEFINE1(lockstat, , , sx__upgrade, "struct sx *");
SDT_PROBE_DEFINE1(lockstat, , , sx__downgrade, "struct sx *");
SDT_PROBE_DEFINE2(lockstat, , , thread__spin, "struct mtx *", "uint64_t");
#ifndef SMP
SDT_PROBE_DEFINE2(lockstat, , , adaptive__spin, "struct mtx *", "uint64_t");
SDT_PROBE_DEFINE2(lockstat, , , spin__spin, "struct mtx *", "uint64_t");
#endif

volatile bool lockstat_enabled;

uint64_t
lockstat_nsecs(uint64_t since)
{
	return (since == 0 ? 0 : nanouptime() - since);
}
