/* The constants of the assembly files. */
#include "sys/assym.h"

#include "machdep.h"

#define FRAME(NAME, field) ASSYM(TF_##NAME, offsetof(struct trapframe, tf_##field))

void genassym(void);

void
genassym(void)
{
	assym_shared();

	FRAME(SP, sp);
	FRAME(LR, lr);
	FRAME(ELR, elr);
	FRAME(SPSR, spsr);
	FRAME(ESR, esr);
	FRAME(FAR, far);
	FRAME(X, x);
	ASSYM(TF_GAP, TF_GAP);

	ASSYM(PCB_X, offsetof(struct thread, td_pcb.pcb_x));
	ASSYM(PCB_SP, offsetof(struct thread, td_pcb.pcb_sp));
	ASSYM(PC_KSTACK_LIMIT, offsetof(struct pcpu, pc_scratch[SCRATCH_KSTACK_LIMIT]));
	ASSYM(EMERGENCY_STACK_SIZE, EMERGENCY_STACK_SIZE);
}
