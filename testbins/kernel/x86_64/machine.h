/* The address of the kernel, and the saved state of a thread that does not run. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE "amd64"
#define MACHINE_ARCH "amd64"
#define KERNBASE 0xffffffff80000000ul /* the last 2 GiB, where -mcmodel=kernel code has to be */

struct pcb {
	uint64_t pcb_rbx, pcb_rbp, pcb_r12, pcb_r13, pcb_r14, pcb_r15;
	uint64_t pcb_rsp, pcb_rip;
};

#endif
