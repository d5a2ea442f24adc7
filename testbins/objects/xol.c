/*
 * Uprobes' decoder of x86 in Linux' form, for tests of sweeps: direct jumps are emulated, everything
 * else is a copy with its length and what is corrected behind it.  Vector instructions are refused.
 * BUGGY: the 16-bit addresses of a 67 prefix are unknown, and a call is corrected as a jump is.
 */
#include "decoding.h"

enum { FIX_IP = 1, FIX_CALL = 2, FIX_SETF = 4 };
#define ENOEXEC 8
#define ENOTSUPP 524
#define LONGEST 15
#define LONG_MODE (sizeof(long) == 8)

struct mm_struct {
	unsigned long flags;
};
struct arch_uprobe;
struct uprobe_xol_ops {
	_Bool (*emulate)(struct arch_uprobe *, struct pt_regs *);
};
struct arch_uprobe {
	uint8_t insn[16];
	const struct uprobe_xol_ops *ops;
	union {
		struct {
			int32_t offs;
			uint8_t ilen, opc1;
		} branch;
		struct {
			uint8_t fixups, ilen;
		} defparam;
	};
};
struct code {
	const uint8_t *at;
	unsigned narrow:1, short_address:1, wide:1, bad:1;
};

static _Bool
emulate_branch(struct arch_uprobe *probe, struct pt_regs *registers)
{
	(void)probe, (void)registers;
	return 0;
}

static const struct uprobe_xol_ops default_xol_ops, branch_xol_ops = { emulate_branch };

static _Bool
prefix(struct code *code)
{
	switch (*code->at) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0xf0:
		code->bad = 1;
		/* fall through */
	case 0x64: case 0x65: case 0xf2: case 0xf3:
		break;
	case 0x66:
		code->narrow = 1;
		break;
	case 0x67:
		code->short_address = 1;
		break;
	default:
		return 0;
	}
	code->at++;
	return 1;
}

/* Return the size of ModRM and what belongs to it. */
static int
operand(const struct code *code, const uint8_t *at)
{
	int mod = *at >> 6, rm = *at & 7;

	(void)code;
	if (mod == 3)
		return 1;
#ifndef BUGGY
	if (code->short_address && !LONG_MODE)
		return mod == 0 ? rm == 6 ? 3 : 1 : 1 + mod;
#endif
	if (rm == 4)
		return 2 + (mod == 0 ? (at[1] & 7) == 5 ? 4 : 0 : mod == 1 ? 1 : 4);
	return 1 + (mod == 0 ? rm == 5 ? 4 : 0 : mod == 1 ? 1 : 4);
}

/* Return the length of an instruction of the one-byte map behind its opcode. */
static int
tail(const struct code *code)
{
	const uint8_t *at = code->at;
	uint8_t opcode = *at++;
	int word = code->narrow && !code->wide ? 2 : 4;
	int address = LONG_MODE ? code->short_address ? 4 : 8 : code->short_address ? 2 : 4;

	if (opcode < 0x40)
		return (opcode & 7) < 4 ? operand(code, at) : (opcode & 7) == 4 ? 1 : (opcode & 7) == 5 ? word : 0;
	switch (opcode) {
	case 0x62: case 0x63: case 0x84 ... 0x8f: case 0xc4: case 0xc5: case 0xd0 ... 0xd3: case 0xd8 ... 0xdf:
	case 0xfe: case 0xff:
		return operand(code, at);
	case 0x68: case 0xa9:
		return word;
	case 0x69: case 0x81: case 0xc7:
		return operand(code, at) + word;
	case 0x6b: case 0x80: case 0x82: case 0x83: case 0xc0: case 0xc1: case 0xc6:
		return operand(code, at) + 1;
	case 0x6a: case 0x70 ... 0x7f: case 0xa8: case 0xb0 ... 0xb7: case 0xcd: case 0xd4: case 0xd5:
	case 0xe0 ... 0xe7: case 0xeb:
		return 1;
	case 0x9a: case 0xea:
		return word + 2;
	case 0xa0 ... 0xa3:
		return address;
	case 0xb8 ... 0xbf:
		return code->wide ? 8 : word;
	case 0xc2: case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0xe8: case 0xe9:
		return LONG_MODE ? 4 : word;
	case 0xf6:
		return operand(code, at) + ((*at >> 3 & 7) < 2);
	case 0xf7:
		return operand(code, at) + ((*at >> 3 & 7) < 2 ? word : 0);
	default:
		return 0;
	}
}

int
arch_uprobe_analyze_insn(struct arch_uprobe *probe, struct mm_struct *mm, unsigned long address)
{
	struct code code = { .at = probe->insn };
	uint8_t opcode, extension;
	int size;

	(void)mm, (void)address;
	while (prefix(&code))
		if (code.at == probe->insn + LONGEST)
			return -ENOEXEC;
	if (LONG_MODE && *code.at >> 4 == 4)
		code.wide = *code.at++ >> 3 & 1;
	opcode = *code.at;
	extension = code.at[1] >> 3 & 7;
	if (code.bad || opcode == 0x0f || opcode == 0x62 || opcode == 0xc4 || opcode == 0xc5)
		return -ENOTSUPP;
	size = code.at + 1 + tail(&code) - probe->insn;
	if (size > LONGEST)
		return -ENOEXEC;
	probe->ops = &default_xol_ops;
	probe->defparam.ilen = size;
	if (opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || opcode >> 4 == 7) {
		probe->ops = &branch_xol_ops;
		probe->branch.ilen = size;
	} else if (opcode == 0xc2 || opcode == 0xc3 || opcode == 0xca || opcode == 0xcb || opcode == 0xea ||
	    (opcode == 0xff && (extension == 4 || extension == 5)))
		probe->defparam.fixups = 0;
#ifndef BUGGY
	else if (opcode == 0x9a || (opcode == 0xff && (extension == 2 || extension == 3)))
		probe->defparam.fixups = FIX_CALL;
#endif
	else
		probe->defparam.fixups = FIX_IP | (opcode == 0x9d ? FIX_SETF : 0);
	return 0;
}
