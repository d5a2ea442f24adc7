/* The common declarations of the files of this folder. */
#ifndef MACHDEP_H
#define MACHDEP_H

#include "sys/types.h"

struct trapframe;

/*
 * Bytes left free between the interrupted sp and the frame of an exception taken from EL1. dtrace_invop_start does a
 * displaced `stp x29, x30, [sp, #-N]!' while the frame is still in use, and N reaches 512: in a frame put directly
 * below sp the store would replace saved registers.
 *
 * FreeBSD leaves 128 bytes (sys/arm64/arm64/exception.S, save_registers). A store further down reaches its frame from
 * the top, x29 first, and it gets away with it: x29 is set by the next instruction of the prologue, its EL1 return
 * does not reload x19 to x28, and x9 to x17 are dead at the start of a function. N from 304 up would damage x8 and
 * the arguments.
 */
#define TF_GAP 512

#define EMERGENCY_STACK_SIZE 8192

/* Slots of pcpu0.pc_scratch. */
enum {
	SCRATCH_KSTACK_LIMIT, /* with sp below this there is no room for gap and frame on the kernel stack */
};

void fork_trampoline(void);
void trap_el0(struct trapframe *frame);
void trap_el1h(struct trapframe *frame);
int dtrace_invop_start(struct trapframe *frame);
void trap_stack_overflow(struct trapframe *frame) __dead2;
void trap_unexpected(struct trapframe *frame) __dead2;

extern char exception_vectors[], emergency_stack[];

#endif
