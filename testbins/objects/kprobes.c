/*
 * Kprobes as Linux has them, for tests of `--glue linux-kprobes`: the direct jump is simulated (b, bl;
 * jal; jmp), calls of the system are refused, and everything else is executed in a slot.  BUGGY: the
 * target of a jump backwards is wrong, and the pc after a copy is not that after the instruction.
 */
#include "decoding.h"

#if defined(__x86_64__) || defined(__i386__)
typedef uint8_t kprobe_opcode_t;
#define SAVED_PC(registers) ((registers)->ip - 1)
#define BREAKPOINT {0xcc}
#else
typedef uint32_t kprobe_opcode_t;
#define SAVED_PC(registers) ((registers)->PC)
#define BREAKPOINT {0}
#endif

struct kprobe;
struct arch_specific_insn {
	kprobe_opcode_t *insn;
	unsigned char size;
	void (*emulate_op)(struct kprobe *, struct pt_regs *);
};
struct kprobe {
	uint8_t *addr;
	struct arch_specific_insn ainsn;
};

uint8_t *get_insn_slot(void);
struct kprobe *get_kprobe(void *);
void *text_poke(void *, const void *, unsigned long);
struct kprobe *current_kprobe;

static void
emulate(struct kprobe *probe, struct pt_regs *registers)
{
	registers->PC = (unsigned long)probe->addr;
	simulate_jump(probe->addr[0] | probe->addr[1] << 8
#if defined(__aarch64__) || defined(__riscv)
	    | probe->addr[2] << 16 | (uint32_t)probe->addr[3] << 24
#endif
	    , registers);
}

#if defined(__x86_64__) || defined(__i386__)
/* The lengths of the few instructions that the tests have: mov, xor and test, push, pop, ret and jmp. */
static int
length(const uint8_t *code)
{
	int rex = (*code & 0xf0) == 0x40 && sizeof(long) == 8;
	uint8_t opcode = code[rex], mode;
	int size = rex + 2;

	if (opcode == 0xeb)
		return 2;
	if (opcode != 0x8b && opcode != 0x89 && opcode != 0x31 && opcode != 0x85 && opcode != 0xc7)
		return rex + 1;
	mode = code[rex + 1] >> 6;
	if (mode != 3 && (code[rex + 1] & 7) == 4)
		size++;
	size += mode == 1 ? 1 : mode == 2 ? 4 : 0;
	return opcode == 0xc7 ? size + 4 : size;
}
#endif

int
arch_prepare_kprobe(struct kprobe *probe)
{
	const uint8_t after[] = BREAKPOINT;
	uint32_t code = probe->addr[0];

#if defined(__aarch64__)
	code |= probe->addr[1] << 8 | probe->addr[2] << 16 | (uint32_t)probe->addr[3] << 24;
	probe->ainsn.size = 4;
#elif defined(__riscv)
	probe->ainsn.size = LENGTH(code);
	code |= probe->addr[1] << 8;
	if (probe->ainsn.size == 4)
		code |= probe->addr[2] << 16 | (uint32_t)probe->addr[3] << 24;
#else
	probe->ainsn.size = length(probe->addr);
#endif
	probe->ainsn.emulate_op = 0;
	if (IS_CALL_OF_THE_SYSTEM(code))
		return -22;
	if (IS_JUMP(code)) {
		probe->ainsn.emulate_op = emulate;
		return 0;
	}
	probe->ainsn.insn = (kprobe_opcode_t *)get_insn_slot();
	text_poke(probe->ainsn.insn, probe->addr, probe->ainsn.size);
	text_poke((uint8_t *)probe->ainsn.insn + probe->ainsn.size, after, sizeof(after));
	return 0;
}

int
kprobe_int3_handler(struct pt_regs *registers)
{
	struct kprobe *probe = get_kprobe((void *)SAVED_PC(registers));

	if (probe) {
		current_kprobe = probe;
		if (probe->ainsn.emulate_op)
			probe->ainsn.emulate_op(probe, registers);
		else
			registers->PC = (unsigned long)probe->ainsn.insn;
	} else {
		probe = current_kprobe;
		registers->PC = (unsigned long)probe->addr + probe->ainsn.size;
#ifdef BUGGY
		registers->PC += 2;
#endif
	}
	return 1;
}
