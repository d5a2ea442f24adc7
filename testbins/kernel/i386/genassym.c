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

	FRAME(EBP, ebp);
	FRAME(EAX, eax);
	FRAME(TRAPNO, trapno);
	FRAME(ERR, err);
	FRAME(EIP, eip);
	FRAME(CS, cs);
	FRAME(EFLAGS, eflags);
	FRAME(ESP, esp);

	PCB(EDI, edi);
	PCB(ESI, esi);
	PCB(EBP, ebp);
	PCB(EBX, ebx);
	PCB(ESP, esp);
	PCB(EIP, eip);

	ASSYM(TSS_ESP0, offsetof(struct tss, tss_esp0));
}
