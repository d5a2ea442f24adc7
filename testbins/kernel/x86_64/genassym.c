/* The constants of the assembly files. */
#include "sys/assym.h"

#include "machdep.h"

#define FRAME(NAME, field) ASSYM(TF_##NAME, offsetof(struct trapframe, tf_##field))
#define PCB(NAME, field) ASSYM(PCB_##NAME, offsetof(struct thread, td_pcb.pcb_##field))

void genassym(void);

void
genassym(void)
{
	assym_shared();

	FRAME(RDI, rdi);
	FRAME(RSI, rsi);
	FRAME(RDX, rdx);
	FRAME(RCX, rcx);
	FRAME(R8, r8);
	FRAME(R9, r9);
	FRAME(RAX, rax);
	FRAME(RBX, rbx);
	FRAME(RBP, rbp);
	FRAME(R10, r10);
	FRAME(R11, r11);
	FRAME(R12, r12);
	FRAME(R13, r13);
	FRAME(R14, r14);
	FRAME(R15, r15);
	FRAME(TRAPNO, trapno);
	FRAME(ADDR, addr);
	FRAME(ERR, err);
	FRAME(RIP, rip);
	FRAME(CS, cs);
	FRAME(RFLAGS, rflags);
	FRAME(RSP, rsp);
	FRAME(SS, ss);

	PCB(RBX, rbx);
	PCB(RBP, rbp);
	PCB(R12, r12);
	PCB(R13, r13);
	PCB(R14, r14);
	PCB(R15, r15);
	PCB(RSP, rsp);
	PCB(RIP, rip);

	ASSYM(PC_SCRATCH_RSP, offsetof(struct pcpu, pc_scratch[SCRATCH_RSP]));
	ASSYM(PC_RSP0, offsetof(struct pcpu, pc_scratch[SCRATCH_RSP0]));
	ASSYM(TSS_RSP0, offsetof(struct tss, tss_rsp0));
}
