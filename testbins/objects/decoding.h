/* What decoder.c and kprobes.c share: saved registers, and the jump that both simulate. */
#include <stdint.h>

struct pt_regs {
#if defined(__aarch64__)
	uint64_t regs[31], sp, pc, pstate;
#elif defined(__riscv)
	uint64_t epc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;
	uint64_t s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6;
#elif defined(__x86_64__)
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
#else
	unsigned long bx, cx, dx, si, di, bp, ax, ds, es, fs, gs, orig_ax, ip, cs, flags, sp, ss;
#endif
};

#if defined(__aarch64__)
#define PC pc
#define IS_JUMP(code) (((code) & 0x7c000000) == 0x14000000)
#define IS_CALL_OF_THE_SYSTEM(code) (((code) & 0xffe0001f) == 0xd4000001)
#define LENGTH(code) 4
#elif defined(__riscv)
#define PC epc
#define IS_JUMP(code) (((code) & 0x7f) == 0x6f)
#define IS_CALL_OF_THE_SYSTEM(code) ((code) == 0x73)
#define LENGTH(code) (((code) & 3) == 3 ? 4 : 2)
#else
#define PC ip
#define IS_JUMP(code) (((code) & 0xff) == 0xeb)
#define IS_CALL_OF_THE_SYSTEM(code) (((code) & 0xfe) == 0xcc)
#endif

/* Do what a jump does; BUGGY: the target of a jump backwards is wrong. */
static inline void
simulate_jump(uint32_t code, struct pt_regs *registers)
{
	long distance;

#if defined(__aarch64__)
	distance = (int64_t)(int32_t)(code << 6) >> 4;
	if (code >> 31)
		registers->regs[30] = registers->pc + 4;
#elif defined(__riscv)
	uint32_t rd = code >> 7 & 31;
	distance = (code >> 20 & 0x7fe) | (code >> 9 & 0x800) | (code & 0xff000);
	distance |= code >> 31 ? -(1l << 20) : 0;
	if (rd)
		(&registers->epc)[rd] = registers->epc + 4;
#else
	distance = (int8_t)(code >> 8) + 2;
#endif
#ifdef BUGGY
	distance &= 0xfffff;
#endif
	registers->PC += distance;
}
