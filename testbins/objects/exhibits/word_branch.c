/*
 * The exhibit word-branch, in C: short jumps of x86 are simulated, and those with an operand-size
 * prefix refused, for they truncate the pc.  BUGGY: the prefix is skipped like any.
 */
#include "uprobe.h"

static const uint8_t *
opcode_of(const struct arch_uprobe *probe, _Bool *narrow)
{
	const uint8_t *code = (const uint8_t *)&probe->insn;

	for (; *code == 0x66; code++)
		*narrow = 1;
	return code;
}

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	_Bool narrow = 0;
	const uint8_t *code = opcode_of(probe, &narrow);

	(void)mm, (void)address;
	if (*code != 0xeb)
		return 0;
#ifndef BUGGY
	if (narrow)
		return -524;
#endif
	probe->simulate = 1;
	return 0;
}

_Bool
arch_uprobe_skip_sstep(struct arch_uprobe *probe, struct pt_regs *registers)
{
	_Bool narrow = 0;
	const uint8_t *code = opcode_of(probe, &narrow);

	registers->ip += code - (const uint8_t *)&probe->insn + 2 + (int8_t)code[1];
	return 1;
}
