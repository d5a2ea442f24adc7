/* Relocations of i386, whose addends are in place (System V ABI, Intel386 supplement; FreeBSD sys/i386/i386/elf_machdep.c). */
#include "sys/errno.h"
#include "sys/linker.h"
#include "sys/machine_interface.h"

#define R_386_NONE 0
#define R_386_32 1
#define R_386_PC32 2
#define R_386_PLT32 4

int
elf_reloc(const struct elf_reloc_context *ctx __unused, uint8_t *where, uint32_t type, uint64_t value)
{
	uint32_t word;

	if (type == R_386_NONE)
		return (0);
	if (type != R_386_32 && type != R_386_PC32 && type != R_386_PLT32)
		return (ENOEXEC);
	memcpy(&word, where, 4);
	word += value;
	if (type != R_386_32)
		word -= (vaddr_t)where;
	memcpy(where, &word, 4);
	return (0);
}
