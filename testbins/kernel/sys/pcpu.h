/* What belongs to the CPU. There is one, so it has a name: pcpu0. */
#ifndef SYS_PCPU_H
#define SYS_PCPU_H

#include "sys/types.h"

struct thread;
struct pmap;

struct pcpu {
	struct thread *pc_curthread;
	struct thread *pc_idlethread;
	struct pmap *pc_curpmap;
	uint64_t pc_scratch[8]; /* for the entry code of the ISA */
};

extern struct pcpu pcpu0;
#define curthread (pcpu0.pc_curthread)
#define curproc (curthread->td_proc)

#endif
