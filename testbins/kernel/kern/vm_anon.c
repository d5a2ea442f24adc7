/*
 * Memory by the variables that illumos' tools read (usr/src/uts/common/vm/vm_anon.c, anon.h, vm_page.c, vm_swap.c). There
 * is no swap space, and no process is swapped out.
 */
#include "sys/kernel.h"
#include "sys/param.h"
#include "sys/systm.h"
#include "sys/vm.h"

struct k_anoninfo {
	unsigned long ani_max;	    /* pages of swap space */
	unsigned long ani_free;
	int ani_phys_max, ani_phys_resv, ani_phys_avail;
	int ani_mem_resv, ani_locked_swap, ani_mem_locked;
};

extern struct k_anoninfo k_anoninfo;
extern long physinstalled, availrmem, availrmem_initial, kpages_locked, swapfs_minfree, swapfs_reserve, Asleep_availrmem;
extern unsigned long _pagesize;
extern int nswapped, ncpus, ncpus_online, mp_ncpus;

struct k_anoninfo k_anoninfo;
long physinstalled, availrmem, availrmem_initial; /* pages: there; not yet locked */
long kpages_locked;				  /* pages that the kernel had when it started */
long swapfs_minfree, swapfs_reserve, Asleep_availrmem;
unsigned long _pagesize = PAGE_SIZE;
int nswapped; /* threads of swapped processes */
int ncpus = 1, ncpus_online = 1;

static void
anon_init(const void *unused __unused)
{
	physinstalled = vm_page_count;
	availrmem = availrmem_initial = vm_page_free_count;
	kpages_locked = vm_page_count - vm_page_free_count;
	ncpus = ncpus_online = mp_ncpus;
}
SYSINIT(anon_init, SI_SUB_KMEM, SI_ORDER_ANY, anon_init, NULL);
