/*
 * The instructions FBT displaces, done on the trap frame (FreeBSD sys/cddl/dev/dtrace/riscv/dtrace_subr.c).
 * Its quirks are kept: the offset of sd is taken as unsigned, and c.nop leaves the pc where the handler put it.
 */
#include "dtrace_subr.h"
#include "sys/machine_interface.h"

#define SD_RA_SP_MATCH 0x00113023 /* sd ra, imm(sp) */
#define SD_RA_SP_MASK 0x01fff07f
#define C_SDSP_RA_MATCH 0xe006 /* c.sdsp ra, imm */
#define C_SDSP_RA_MASK 0xe07f
#define RET_INSTR 0x00008067
#define C_RET_INSTR 0x8082
#define C_NOP_INSTR 0x0001
#define HALF_MASK 0xffff
#define INSN_SIZE 4
#define INSN_C_SIZE 2

int
dtrace_invop_start(struct trapframe *frame)
{
	uint32_t instr = dtrace_invop(frame->tf_sepc, frame, 0);
	uint32_t imm;

	if (instr == 0)
		return (-1);

	if ((instr & SD_RA_SP_MASK) == SD_RA_SP_MATCH) {
		imm = ((instr >> 7) & 0x1f) | (instr >> 25 & 0x7f) << 5;
		*(uint64_t *)(frame->tf_sp + imm) = frame->tf_ra;
		frame->tf_sepc += INSN_SIZE;
		return (0);
	}
	if (instr == RET_INSTR) {
		frame->tf_sepc = frame->tf_ra;
		return (0);
	}
	if ((instr & C_SDSP_RA_MASK) == C_SDSP_RA_MATCH) {
		imm = ((instr >> 10) & 0x7) << 3 | ((instr >> 7) & 0x7) << 6;
		*(uint64_t *)(frame->tf_sp + imm) = frame->tf_ra;
		frame->tf_sepc += INSN_C_SIZE;
		return (0);
	}
	if ((instr & HALF_MASK) == C_RET_INSTR) {
		frame->tf_sepc = frame->tf_ra;
		return (0);
	}
	if ((instr & HALF_MASK) == C_NOP_INSTR)
		return (0);
	return (-1);
}
