/* Breakpoints that may be DTrace's. */
#ifndef RISCV64_DTRACE_SUBR_H
#define RISCV64_DTRACE_SUBR_H

struct trapframe;

int dtrace_invop_start(struct trapframe *frame); /* 0: done, -1: not DTrace's */

#endif
