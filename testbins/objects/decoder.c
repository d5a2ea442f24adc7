/*
 * A decoder as Linux' uprobes have one, for tests of `--glue linux-uprobes`: it simulates the direct
 * jump (b, bl; jal) and refuses svc and ecall; everything else is executed as a copy.  BUGGY: the
 * target of a jump backwards is wrong, and an instruction of all ones is read behind its end.
 */
#include <stdint.h>

struct pt_regs {
#if defined(__aarch64__)
	uint64_t regs[31], sp, pc, pstate;
#else
	uint64_t epc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;
	uint64_t s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6;
#endif
};
struct mm_struct {
	unsigned long flags;
};
struct arch_uprobe {
	_Bool simulate;
	uint32_t insn;
};

#if defined(__aarch64__)
#define IS_JUMP(code) (((code) & 0x7c000000) == 0x14000000)
#define IS_CALL_OF_THE_SYSTEM(code) (((code) & 0xffe0001f) == 0xd4000001)
#else
#define IS_JUMP(code) (((code) & 0x7f) == 0x6f)
#define IS_CALL_OF_THE_SYSTEM(code) ((code) == 0x73)
#endif

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	(void)mm, (void)address;
#ifdef BUGGY
	if (probe->insn == 0xffffffff && (&probe->insn)[1])
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
	uint32_t code = probe->insn;
	int64_t distance;

	if (!probe->simulate)
		return 0;
#if defined(__aarch64__)
	distance = (int64_t)(int32_t)(code << 6) >> 4;
	if (code >> 31)
		registers->regs[30] = registers->pc + 4;
#else
	uint32_t rd = code >> 7 & 31;
	distance = (code >> 20 & 0x7fe) | (code >> 9 & 0x800) | (code & 0xff000);
	distance |= code >> 31 ? -(1l << 20) : 0;
	if (rd)
		(&registers->epc)[rd] = registers->epc + 4;
#endif
#ifdef BUGGY
	distance &= 0xfffff;
#endif
#if defined(__aarch64__)
	registers->pc += distance;
#else
	registers->epc += distance;
#endif
	return 1;
}
