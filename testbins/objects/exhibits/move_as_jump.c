/*
 * The exhibit move-as-jump, in C as a port of uprobes to RISC-V has it: BUGGY: the masks of c.jr and
 * c.jalr leave out four bits of the field that tells them from c.mv and c.add.
 */
#include "uprobe.h"

#ifdef BUGGY
#define MASK 0xf007
#else
#define MASK 0xf07f
#endif

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	uint32_t code = probe->insn, target = code >> 7 & 31;

	(void)mm, (void)address;
	if ((code & 3) == 2 && target && ((code & MASK) == 0x8002 || (code & MASK) == 0x9002))
		probe->simulate = 1;
	return 0;
}

_Bool
arch_uprobe_skip_sstep(struct arch_uprobe *probe, struct pt_regs *registers)
{
	uint32_t code = probe->insn;
	uint64_t target = (&registers->epc)[code >> 7 & 31];

	if (code & 0x1000)
		registers->ra = registers->epc + 2;
	registers->epc = target;
	return 1;
}
