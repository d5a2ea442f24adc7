/* A hardware address space. The machine-dependent part owns the tables below the root. */
#ifndef SYS_PMAP_H
#define SYS_PMAP_H

#include "sys/types.h"

struct pmap {
	paddr_t pm_root;	 /* physical address of the root table */
	uint64_t pm_resident;	 /* user pages mapped */
};

extern struct pmap kernel_pmap; /* kern/vm_kern.c; pmap_bootstrap sets its root */

#endif
