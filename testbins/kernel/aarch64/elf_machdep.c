/* Relocations of AArch64 (ELF for the Arm 64-bit Architecture, 5.7; FreeBSD sys/arm64/arm64/elf_machdep.c). */
#include "sys/errno.h"
#include "sys/linker.h"
#include "sys/machine_interface.h"

#define R_AARCH64_NONE 0
#define R_AARCH64_ABS64 257
#define R_AARCH64_PREL64 260
#define R_AARCH64_PREL32 261
#define R_AARCH64_ADR_PREL_PG_HI21 275
#define R_AARCH64_ADR_PREL_PG_HI21_NC 276
#define R_AARCH64_ADD_ABS_LO12_NC 277
#define R_AARCH64_LDST8_ABS_LO12_NC 278
#define R_AARCH64_CONDBR19 280
#define R_AARCH64_JUMP26 282
#define R_AARCH64_CALL26 283
#define R_AARCH64_LDST16_ABS_LO12_NC 284
#define R_AARCH64_LDST32_ABS_LO12_NC 285
#define R_AARCH64_LDST64_ABS_LO12_NC 286
#define R_AARCH64_LDST128_ABS_LO12_NC 299

/* Puts `bits' bits of a distance that must be a multiple of 1 << scale into the instruction, from bit `at' on. */
static int
elf_reloc_distance(uint32_t *insn, int64_t value, int scale, int bits, int at)
{
	int64_t limit = 1l << (bits + scale - 1);
	uint32_t mask = ((1u << bits) - 1) << at;

	if (value < -limit || value >= limit || value & ((1l << scale) - 1))
		return (ENOEXEC);
	*insn = (*insn & ~mask) | ((uint32_t)(value >> scale) << at & mask);
	return (0);
}

/* The low twelve bits, in units of 1 << scale. */
static int
elf_reloc_low(uint32_t *insn, uint64_t value, int scale)
{
	value &= 0xfff;
	if (value & ((1ul << scale) - 1))
		return (ENOEXEC);
	*insn = (*insn & ~(0xfffu << 10)) | value >> scale << 10;
	return (0);
}

int
elf_reloc(const struct elf_reloc_context *ctx __unused, uint8_t *where, uint32_t type, uint64_t value)
{
	uint32_t *insn = (uint32_t *)where;
	int64_t pages, distance = value - (vaddr_t)where;

	switch (type) {
	case R_AARCH64_NONE:
		return (0);
	case R_AARCH64_PREL64:
		value = distance;
		/* FALLTHROUGH */
	case R_AARCH64_ABS64:
		memcpy(where, &value, 8);
		return (0);
	case R_AARCH64_PREL32:
		if (distance != (int32_t)distance)
			return (ENOEXEC);
		memcpy(where, &distance, 4);
		return (0);
	case R_AARCH64_ADR_PREL_PG_HI21:
	case R_AARCH64_ADR_PREL_PG_HI21_NC:
		pages = (int64_t)(rounddown2(value, PAGE_SIZE) - rounddown2((vaddr_t)where, PAGE_SIZE)) >> PAGE_SHIFT;
		if (pages < -(1l << 20) || pages >= 1l << 20)
			return (ENOEXEC);
		*insn = (*insn & ~(3u << 29 | 0x7ffffu << 5)) | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5;
		return (0);
	case R_AARCH64_ADD_ABS_LO12_NC:
	case R_AARCH64_LDST8_ABS_LO12_NC:
		return (elf_reloc_low(insn, value, 0));
	case R_AARCH64_LDST16_ABS_LO12_NC:
		return (elf_reloc_low(insn, value, 1));
	case R_AARCH64_LDST32_ABS_LO12_NC:
		return (elf_reloc_low(insn, value, 2));
	case R_AARCH64_LDST64_ABS_LO12_NC:
		return (elf_reloc_low(insn, value, 3));
	case R_AARCH64_LDST128_ABS_LO12_NC:
		return (elf_reloc_low(insn, value, 4));
	case R_AARCH64_CONDBR19:
		return (elf_reloc_distance(insn, distance, 2, 19, 5));
	case R_AARCH64_JUMP26:
	case R_AARCH64_CALL26:
		return (elf_reloc_distance(insn, distance, 2, 26, 0));
	default:
		return (ENOEXEC);
	}
}
