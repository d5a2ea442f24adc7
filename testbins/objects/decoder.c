/*
 * A decoder as Linux' uprobes have one, for tests of `--glue linux-uprobes`: it simulates the direct
 * jump (b, bl; jal; jmp) and refuses calls of the system (svc, ecall, int); everything else is
 * executed as a copy.  BUGGY: the target of a jump backwards is wrong, an instruction of all ones is
 * read behind its end, and the pc after a copy is not that after the instruction.
 */
#include "decoding.h"

struct mm_struct {
	unsigned long flags;
};
struct uprobe_task {
	unsigned long vaddr, xol_vaddr;
};
struct task_struct {
	struct uprobe_task *utask;
};
extern struct task_struct trapline_task;
struct arch_uprobe {
	_Bool simulate;
	uint32_t insn;
	uint8_t more[12];
};

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	(void)mm, (void)address;
#ifdef BUGGY
	if (probe->insn == 0xffffffff && probe[1].insn)
		return -22;
#endif
	if (IS_CALL_OF_THE_SYSTEM(probe->insn))
		return -22;
	probe->simulate = IS_JUMP(probe->insn);
	return 0;
}

_Bool
arch_uprobe_skip_sstep(struct arch_uprobe *probe, struct pt_regs *registers)
{
	if (!probe->simulate)
		return 0;
	simulate_jump(probe->insn, registers);
	return 1;
}

int
arch_uprobe_pre_xol(struct arch_uprobe *probe, struct pt_regs *registers)
{
	(void)probe;
	registers->PC = trapline_task.utask->xol_vaddr;
	return 0;
}

int
arch_uprobe_post_xol(struct arch_uprobe *probe, struct pt_regs *registers)
{
	struct uprobe_task *task = trapline_task.utask;

#if defined(__aarch64__) || defined(__riscv)
	(void)probe;
	registers->PC = task->vaddr + LENGTH(probe->insn);
#else
	/* A return leaves the slot; everything else ends in it. */
	if ((probe->insn & 0xff) != 0xc3)
		registers->PC += task->vaddr - task->xol_vaddr;
#endif
#ifdef BUGGY
	registers->PC += 2;
#endif
	return 0;
}
