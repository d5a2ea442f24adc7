/* Offsets for the assembly of this ISA. */
#include "sys/assym.h"

void genassym(void);

void
genassym(void)
{
	assym_shared();
	ASSYM(TF_RA, offsetof(struct trapframe, tf_ra));
	ASSYM(TF_SP, offsetof(struct trapframe, tf_sp));
	ASSYM(TF_GP, offsetof(struct trapframe, tf_gp));
	ASSYM(TF_TP, offsetof(struct trapframe, tf_tp));
	ASSYM(TF_T, offsetof(struct trapframe, tf_t));
	ASSYM(TF_S, offsetof(struct trapframe, tf_s));
	ASSYM(TF_A, offsetof(struct trapframe, tf_a));
	ASSYM(TF_SEPC, offsetof(struct trapframe, tf_sepc));
	ASSYM(TF_SSTATUS, offsetof(struct trapframe, tf_sstatus));
	ASSYM(TF_STVAL, offsetof(struct trapframe, tf_stval));
	ASSYM(TF_SCAUSE, offsetof(struct trapframe, tf_scause));
	ASSYM(PCB_RA, offsetof(struct pcb, pcb_ra));
	ASSYM(PCB_SP, offsetof(struct pcb, pcb_sp));
	ASSYM(PCB_S, offsetof(struct pcb, pcb_s));
}
