/* RISC-V: sv39, one hart. */
#ifndef RISCV64_MACHINE_H
#define RISCV64_MACHINE_H

#include "sys/types.h"

#define MACHINE "riscv"
#define MACHINE_ARCH "riscv64"
#define KERNBASE 0xffffffc000000000UL

struct pcb { /* swtch.S */
	uint64_t pcb_ra;
	uint64_t pcb_sp;
	uint64_t pcb_s[12];
};

#endif
