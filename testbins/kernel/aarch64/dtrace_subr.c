/*
 * The displaced instruction of a DTrace breakpoint is done here, on the frame
 * (FreeBSD: sys/cddl/dev/dtrace/aarch64/dtrace_subr.c).
 *
 * As there, the order of the tests and what they do not look at are part of the behaviour: a load or store pair and a
 * sub are taken to be on sp whatever their base register says, a branch only goes forward, and a word that is none of
 * these (0, unclaimed, among them) changes nothing, so that the breakpoint is met again unless the handler itself has
 * moved elr.
 */
#include "machdep.h"
#include "sys/machine_interface.h"

#define INSN_SIZE 4

#define LDP_STP_MASK 0xffc00000u
#define STP_64 0xa9800000u	/* stp xt1, xt2, [xn, #imm]! */
#define LDP_64 0xa8c00000u	/* ldp xt1, xt2, [xn], #imm */
#define PAIR_RT1(w) ((w) & 31)
#define PAIR_RT2(w) ((w) >> 10 & 31)
#define PAIR_OFFSET(w) ((int64_t)((int32_t)((w) << 10) >> 25) * 8)

#define SUB_MASK 0xffc00000u
#define SUB_INSTR 0xd1000000u	/* sub xd, xn, #imm */
#define SUB_IMM(w) ((w) >> 10 & 0xfff)

#define B_MASK 0xff000000u
#define B_INSTR 0x14000000u	/* b, to a higher address */
#define B_OFFSET(w) (((w) & 0x00ffffffu) * INSN_SIZE)

#define NOP_INSTR 0xd503201fu
#define RET_INSTR 0xd65f03c0u

#define REG_LR 30		/* 31 is xzr */

static inline uint64_t
dtrace_load_register(const struct trapframe *frame, unsigned int reg)
{
	if (reg < REG_LR)
		return frame->tf_x[reg];
	return reg == REG_LR ? frame->tf_lr : 0;
}

static inline void
dtrace_store_register(struct trapframe *frame, unsigned int reg, uint64_t value)
{
	if (reg < REG_LR)
		frame->tf_x[reg] = value;
	else if (reg == REG_LR)
		frame->tf_lr = value;
}

/*
 * Called for brk #0x40d taken at EL1. Returns -1 for an unknown word; no caller checks it.
 */
int
dtrace_invop_start(struct trapframe *frame)
{
	uint64_t *sp = (uint64_t *)frame->tf_sp;
	uint32_t word = (uint32_t)dtrace_invop(frame->tf_elr, frame, frame->tf_x[0]);

	if ((word & LDP_STP_MASK) == STP_64) {
		sp += PAIR_OFFSET(word) / 8;
		sp[0] = dtrace_load_register(frame, PAIR_RT1(word));
		sp[1] = dtrace_load_register(frame, PAIR_RT2(word));
		frame->tf_sp = (uint64_t)sp;
	} else if ((word & LDP_STP_MASK) == LDP_64) {
		dtrace_store_register(frame, PAIR_RT1(word), sp[0]);
		dtrace_store_register(frame, PAIR_RT2(word), sp[1]);
		frame->tf_sp += PAIR_OFFSET(word);
	} else if ((word & SUB_MASK) == SUB_INSTR) {
		frame->tf_sp -= SUB_IMM(word);
	} else if (word == NOP_INSTR) {
		/* Only elr moves. */
	} else if ((word & B_MASK) == B_INSTR) {
		frame->tf_elr += B_OFFSET(word);
		return 0;
	} else if (word == RET_INSTR) {
		frame->tf_elr = frame->tf_lr;
		return 0;
	} else {
		return -1;
	}
	frame->tf_elr += INSN_SIZE;
	return 0;
}
