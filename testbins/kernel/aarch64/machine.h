/* The address of the kernel, and the saved state of a thread that does not run. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE "arm64"
#define MACHINE_ARCH "aarch64"
#define KERNBASE 0xffffff8000000000ul /* the upper half with 39-bit addresses */

struct pcb {
	uint64_t pcb_x[12]; /* x19-x30 */
	uint64_t pcb_sp;
};

#endif
