/* The address of the kernel, and the saved state of a thread that does not run. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE "i386"
#define MACHINE_ARCH "i386"
#define KERNBASE 0xc0000000ul /* the last GiB */

struct pcb {
	uint32_t pcb_edi, pcb_esi, pcb_ebp, pcb_ebx;
	uint32_t pcb_esp, pcb_eip;
};

#endif
