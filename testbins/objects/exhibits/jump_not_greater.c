/*
 * The exhibit jump-not-greater, in C: short conditional jumps of x86 are simulated.  BUGGY: jle
 * jumps if both of its conditions hold, where one is enough.
 */
#include "uprobe.h"

enum { CF = 0x001, PF = 0x004, ZF = 0x040, SF = 0x080, OF = 0x800 };

static _Bool
holds(unsigned number, unsigned long flags)
{
	_Bool zero = flags & ZF, less = !(flags & SF) != !(flags & OF);

	switch (number) {
	case 0: return flags & OF;
	case 1: return flags & CF;
	case 2: return zero;
	case 3: return zero || flags & CF;
	case 4: return flags & SF;
	case 5: return flags & PF;
	case 6: return less;
#ifdef BUGGY
	default: return zero && less;
#else
	default: return zero || less;
#endif
	}
}

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	(void)mm, (void)address;
	probe->simulate = (probe->insn & 0xf0) == 0x70;
	return 0;
}

_Bool
arch_uprobe_skip_sstep(struct arch_uprobe *probe, struct pt_regs *registers)
{
	unsigned opcode = probe->insn & 0xff;

	registers->ip += 2;
	if (holds(opcode >> 1 & 7, registers->flags) != (opcode & 1))
		registers->ip += (int8_t)(probe->insn >> 8);
	return 1;
}
