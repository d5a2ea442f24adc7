/* Relocations of RISC-V (RISC-V ELF psABI, relocations; FreeBSD sys/riscv/riscv/elf_machdep.c). */
#include "sys/errno.h"
#include "sys/linker.h"
#include "sys/machine_interface.h"

#define R_RISCV_NONE 0
#define R_RISCV_32 1
#define R_RISCV_64 2
#define R_RISCV_BRANCH 16
#define R_RISCV_JAL 17
#define R_RISCV_CALL 18
#define R_RISCV_CALL_PLT 19
#define R_RISCV_PCREL_HI20 23
#define R_RISCV_PCREL_LO12_I 24
#define R_RISCV_PCREL_LO12_S 25
#define R_RISCV_ADD32 35
#define R_RISCV_ADD64 36
#define R_RISCV_SUB32 39
#define R_RISCV_SUB64 40
#define R_RISCV_RVC_BRANCH 44
#define R_RISCV_RVC_JUMP 45
#define R_RISCV_RELAX 51

/* `n' bits of a value from bit `from' on, at bit `to' of an instruction. */
#define FIELD(value, from, n, to) ((uint32_t)((value) >> (from) & ((1u << (n)) - 1)) << (to))
#define HI20(value) (((value) + 0x800) & 0xfffff000)

static uint32_t
load32(const uint8_t *where)
{
	uint32_t word;

	memcpy(&word, where, 4); /* instructions are two-byte aligned */
	return (word);
}

static void
set_bits(uint8_t *where, uint32_t mask, uint32_t bits)
{
	uint32_t word = (load32(where) & ~mask) | bits;

	memcpy(where, &word, 4);
}

static void
set_bits16(uint8_t *where, uint16_t mask, uint16_t bits)
{
	uint16_t half = (*(uint16_t *)where & ~mask) | bits;

	memcpy(where, &half, 2);
}

static bool
fits(int64_t value, int bits)
{
	return (value >= -(1l << (bits - 1)) && value < 1l << (bits - 1) && !(value & 1));
}

/* A low part names its auipc, not the symbol: the distance is that of the relocation there. */
static int
pcrel_low(const struct elf_reloc_context *ctx, uint64_t auipc, int64_t *distance)
{
	for (uint64_t i = 0; i < ctx->count; i++) {
		const struct elf64_rela *rela = &ctx->rela[i];

		if ((vaddr_t)ctx->base + rela->r_offset == auipc && ELF64_R_TYPE(rela->r_info) == R_RISCV_PCREL_HI20) {
			*distance = ctx->symtab[ELF64_R_SYM(rela->r_info)].st_value + rela->r_addend - auipc;
			return (0);
		}
	}
	return (ENOEXEC);
}

static int
elf_reloc_code(const struct elf_reloc_context *ctx, uint8_t *where, uint32_t type, uint64_t value)
{
	int64_t d = value - (vaddr_t)where;

	switch (type) {
	case R_RISCV_BRANCH:
		if (!fits(d, 13))
			return (ENOEXEC);
		set_bits(where, 0xfe000f80, FIELD(d, 12, 1, 31) | FIELD(d, 5, 6, 25) | FIELD(d, 1, 4, 8) | FIELD(d, 11, 1, 7));
		return (0);
	case R_RISCV_JAL:
		if (!fits(d, 21))
			return (ENOEXEC);
		set_bits(where, 0xfffff000, FIELD(d, 20, 1, 31) | FIELD(d, 1, 10, 21) | FIELD(d, 11, 1, 20) | FIELD(d, 12, 8, 12));
		return (0);
	case R_RISCV_RVC_BRANCH:
		if (!fits(d, 9))
			return (ENOEXEC);
		set_bits16(where, 0x1c7c, FIELD(d, 8, 1, 12) | FIELD(d, 3, 2, 10) | FIELD(d, 6, 2, 5) | FIELD(d, 1, 2, 3) | FIELD(d, 5, 1, 2));
		return (0);
	case R_RISCV_RVC_JUMP:
		if (!fits(d, 12))
			return (ENOEXEC);
		set_bits16(where, 0x1ffc, FIELD(d, 11, 1, 12) | FIELD(d, 4, 1, 11) | FIELD(d, 8, 2, 9) | FIELD(d, 10, 1, 8) |
		    FIELD(d, 6, 1, 7) | FIELD(d, 7, 1, 6) | FIELD(d, 1, 3, 3) | FIELD(d, 5, 1, 2));
		return (0);
	case R_RISCV_CALL:
	case R_RISCV_CALL_PLT:
		if (d + 0x800 != (int32_t)(d + 0x800))
			return (ENOEXEC);
		set_bits(where, 0xfffff000, HI20(d));
		set_bits(where + 4, 0xfff00000, FIELD(d, 0, 12, 20));
		return (0);
	case R_RISCV_PCREL_HI20:
		if (d + 0x800 != (int32_t)(d + 0x800))
			return (ENOEXEC);
		set_bits(where, 0xfffff000, HI20(d));
		return (0);
	case R_RISCV_PCREL_LO12_I:
		if (pcrel_low(ctx, value, &d) != 0)
			return (ENOEXEC);
		set_bits(where, 0xfff00000, FIELD(d, 0, 12, 20));
		return (0);
	case R_RISCV_PCREL_LO12_S:
		if (pcrel_low(ctx, value, &d) != 0)
			return (ENOEXEC);
		set_bits(where, 0xfe000f80, FIELD(d, 5, 7, 25) | FIELD(d, 0, 5, 7));
		return (0);
	default:
		return (ENOEXEC);
	}
}

int
elf_reloc(const struct elf_reloc_context *ctx, uint8_t *where, uint32_t type, uint64_t value)
{
	uint64_t old = 0;
	size_t size = type == R_RISCV_64 || type == R_RISCV_ADD64 || type == R_RISCV_SUB64 ? 8 : 4;

	switch (type) {
	case R_RISCV_NONE:
	case R_RISCV_RELAX:
		return (0);
	case R_RISCV_32:
	case R_RISCV_64:
		memcpy(where, &value, size);
		return (0);
	case R_RISCV_ADD32:
	case R_RISCV_ADD64:
	case R_RISCV_SUB32:
	case R_RISCV_SUB64:
		memcpy(&old, where, size);
		old = type == R_RISCV_ADD32 || type == R_RISCV_ADD64 ? old + value : old - value;
		memcpy(where, &old, size);
		return (0);
	default:
		return (elf_reloc_code(ctx, where, type, value));
	}
}
