/* Relocations of x86-64 (System V ABI, AMD64 supplement, 4.4; FreeBSD sys/amd64/amd64/elf_machdep.c). */
#include "sys/errno.h"
#include "sys/linker.h"
#include "sys/machine_interface.h"

#define R_X86_64_NONE 0
#define R_X86_64_64 1
#define R_X86_64_PC32 2
#define R_X86_64_PLT32 4
#define R_X86_64_32 10
#define R_X86_64_32S 11
#define R_X86_64_PC64 24

int
elf_reloc(const struct elf_reloc_context *ctx __unused, uint8_t *where, uint32_t type, uint64_t value)
{
	switch (type) {
	case R_X86_64_NONE:
		return (0);
	case R_X86_64_PC64:
		value -= (vaddr_t)where;
		/* FALLTHROUGH */
	case R_X86_64_64:
		memcpy(where, &value, 8);
		return (0);
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		value -= (vaddr_t)where;
		/* FALLTHROUGH */
	case R_X86_64_32S:
		if ((int64_t)value != (int32_t)value)
			return (ENOEXEC);
		memcpy(where, &value, 4);
		return (0);
	case R_X86_64_32:
		if (value != (uint32_t)value)
			return (ENOEXEC);
		memcpy(where, &value, 4);
		return (0);
	default:
		return (ENOEXEC);
	}
}
