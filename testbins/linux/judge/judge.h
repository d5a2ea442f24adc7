/*
 * What a port gives: the system calls, and the state of a CPU in a signal's frame.
 */
#ifndef JUDGE_H
#define JUDGE_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned long word;

/* The registers that a program sees, in the order of the ISA's numbers. */
struct state {
	u64 pc;
	u64 flags;        /* those that arithmetic writes; x86: above them, which of the x87's registers are not empty */
	u64 control;      /* of floating point: x86 mxcsr, and the x87's control and status word above; fpcr and fpsr; fcsr */
	u64 general[32];
	u64 vectors[64];  /* x86: 16 of 128 bits, and 8 of the x87; AArch64: 32 of 128 bits; RISC-V: 32 of 64 bits */
};

/* siginfo_t, as far as faults fill it. */
struct info {
	int signal;
	int error;
	int code;
#if __SIZEOF_POINTER__ == 8
	int padding;
#endif
	word address;
	char rest[128];
};

#include "port.h"

#endif
