/*
 * What the system says of itself: the variables that D scripts read, and their names for sysctl(8) (FreeBSD
 * sys/kern/kern_mib.c, kern_tc.c, kern_jail.c, subr_param.c; conf/newvers.sh makes the first ones).
 */
#include "sys/kernel.h"
#include "sys/jail.h"
#include "sys/sysctl.h"
#include "sys/systm.h"
#include "sys/time.h"
#include "sys/vm.h"

/* Threads that could run, on average, in units of 1/FSCALE (FreeBSD sys/vm/vm_param.h, sys/sys/resource.h). */
#define FSHIFT 11
#define FSCALE (1 << FSHIFT)
struct loadavg {
	uint32_t ldavg[3];
	long fscale;
};
extern struct loadavg averunnable;
extern int hp_avenrun[3];

#define HOSTNAME "teaching"

/* illumos's names of what FreeBSD has in ostype, osrelease and prison0 (usr/src/uts/common/sys/utsname.h): scripts use both. */
struct utsname {
	char sysname[32], nodename[32], release[32], version[64], machine[32];
};
extern struct utsname utsname;
extern char hostname[];

const char ostype[] = "FreeBSD";
const char osrelease[] = "14.0-TEACHING";
const char version[] = "FreeBSD 14.0-TEACHING teaching kernel\n";
const char kern_ident[] = "TEACHING";
const char machine[] = MACHINE;
const char machine_arch[] = MACHINE_ARCH;
const int osreldate = 1400097;
int hz = HZ;
int maxproc = MAXPROC;
int maxfilesperproc = NOFILE;
int mp_ncpus = 1;
long physmem; /* pages */
struct loadavg averunnable = { { 0, 0, 0 }, FSCALE };
int hp_avenrun[3]; /* the same as illumos has it, in units of 1/65536 (usr/src/uts/common/os/clock.c) */
int maxusers = 8;
long freemem; /* pages, as of the last tick */
char hostname[256] = HOSTNAME;
struct utsname utsname = { "FreeBSD", HOSTNAME, "14.0-TEACHING", "FreeBSD 14.0-TEACHING teaching kernel", MACHINE };
volatile time_t time_second, time_uptime = 1;
struct timeval boottime = { BOOTTIME, 0 };
struct prison prison0 = { .pr_id = 0, .pr_name = "0", .pr_path = "/", .pr_hostname = HOSTNAME, .pr_domainname = "" };

/* Once in a tick: D programs cannot call nanouptime(). */
void
tc_windup(void)
{
	time_uptime = nanouptime() / 1000000000 + 1; /* 1 from the start: 0 means unset */
	freemem = vm_page_free_count;
	time_second = boottime.tv_sec + nanouptime() / 1000000000;
}

/* Every five seconds: the averages of one, five and fifteen minutes forget by that much (FreeBSD sys/kern/kern_synch.c). */
void
loadav(void)
{
	static const uint32_t cexp[] = { 1884, 2014, 2037 }; /* exp(-1/12), exp(-1/60), exp(-1/180) in units of 1/FSCALE */
	static uint64_t next;

	if (ticks < next)
		return;
	next = ticks + 5 * hz;
	for (size_t i = 0; i < nitems(cexp); i++) {
		averunnable.ldavg[i] = (cexp[i] * averunnable.ldavg[i] + sched_load() * FSCALE * (FSCALE - cexp[i])) >> FSHIFT;
		hp_avenrun[i] = averunnable.ldavg[i] << (16 - FSHIFT);
	}
}

static void
mib_init(const void *unused __unused)
{
	physmem = vm_page_count;
	tc_windup();
}
SYSINIT(mib_init, SI_SUB_KMEM, SI_ORDER_ANY, mib_init, NULL);

SYSCTL_STRING(ostype, "kern.ostype", ostype);
SYSCTL_STRING(osrelease, "kern.osrelease", osrelease);
SYSCTL_STRING(version, "kern.version", version);
SYSCTL_STRING(ident, "kern.ident", kern_ident);
SYSCTL_STRING(hostname, "kern.hostname", prison0.pr_hostname);
SYSCTL_STRING(machine, "hw.machine", machine);
SYSCTL_STRING(machine_arch, "hw.machine_arch", machine_arch);
SYSCTL(hz, "kern.hz", &hz, NULL);
SYSCTL(maxproc, "kern.maxproc", &maxproc, NULL);
SYSCTL(ncpu, "hw.ncpu", &mp_ncpus, NULL);
