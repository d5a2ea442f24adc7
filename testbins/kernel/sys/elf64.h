/* As much of ELF as loading a static program takes. */
#ifndef SYS_ELF64_H
#define SYS_ELF64_H

#include "sys/types.h"

/* A 32-bit kernel runs 32-bit programs: what the code calls elf64 is elf32 there, by name and by layout. */
#if __SIZEOF_POINTER__ == 8
typedef uint64_t elf_word_t;
#else
typedef uint32_t elf_word_t;
#define elf64_ehdr elf32_ehdr
#define elf64_phdr elf32_phdr
#define elf64_check_header elf32_check_header
#define elf64_prot elf32_prot
#define elf64_load_section elf32_load_section
#define exec_elf64_imgact exec_elf32_imgact
#endif

struct elf64_ehdr {
	uint8_t e_ident[16];
	uint16_t e_type;
	uint16_t e_machine;
	uint32_t e_version;
	elf_word_t e_entry;
	elf_word_t e_phoff;
	elf_word_t e_shoff;
	uint32_t e_flags;
	uint16_t e_ehsize;
	uint16_t e_phentsize;
	uint16_t e_phnum;
	uint16_t e_shentsize;
	uint16_t e_shnum;
	uint16_t e_shstrndx;
};

struct elf64_phdr {
	uint32_t p_type;
#if __SIZEOF_POINTER__ == 8
	uint32_t p_flags;
#endif
	elf_word_t p_offset;
	elf_word_t p_vaddr;
	elf_word_t p_paddr;
	elf_word_t p_filesz;
	elf_word_t p_memsz;
#if __SIZEOF_POINTER__ == 4
	uint32_t p_flags;
#endif
	elf_word_t p_align;
};

#if __SIZEOF_POINTER__ == 8
#define ELF64_IDENT "\177ELF\2\1\1"
#else
#define ELF64_IDENT "\177ELF\1\1\1"
#endif
#define ET_EXEC 2
#define PT_LOAD 1
#define PF_X 1
#define PF_W 2
#define PF_R 4

#if defined(__x86_64__)
#define ELF_MACHINE 62
#elif defined(__aarch64__)
#define ELF_MACHINE 183
#elif defined(__riscv)
#define ELF_MACHINE 243
#elif defined(__i386__)
#define ELF_MACHINE 3
#endif

#endif
