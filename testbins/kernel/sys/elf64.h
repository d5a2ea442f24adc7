/* As much of ELF as the kernel and the run-time linker take to load programs. */
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
#define elf64_header elf32_header
#define elf64_phdrs elf32_phdrs
#define elf64_load_sections elf32_load_sections
#define elf64_load_interp elf32_load_interp
#define elf64_get_interp elf32_get_interp
#define exec_elf64_imgact exec_elf32_imgact
#define exec_elf64_auxv exec_elf32_auxv
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

struct elf64_dyn {
	long d_tag;
	elf_word_t d_val;
};

struct elf64_shdr {
	uint32_t sh_name;
	uint32_t sh_type;
	elf_word_t sh_flags;
	elf_word_t sh_addr;
	elf_word_t sh_offset;
	elf_word_t sh_size;
	uint32_t sh_link;
	uint32_t sh_info;
	elf_word_t sh_addralign;
	elf_word_t sh_entsize;
};

struct elf64_sym {
	uint32_t st_name;
#if __SIZEOF_POINTER__ == 4
	uint32_t st_value;
	uint32_t st_size;
#endif
	uint8_t st_info;
	uint8_t st_other;
	uint16_t st_shndx;
#if __SIZEOF_POINTER__ == 8
	uint64_t st_value;
	uint64_t st_size;
#endif
};

struct elf64_rela {
	elf_word_t r_offset;
	elf_word_t r_info; /* symbol, type */
#if __SIZEOF_POINTER__ == 8
	int64_t r_addend;
#endif
};

#define SHT_PROGBITS 1
#define SHT_SYMTAB 2
#if __SIZEOF_POINTER__ == 8
#define SHT_RELA 4
#else
#define SHT_RELA 9 /* SHT_REL: the addend is in the place */
#endif
#define SHT_NOBITS 8
#define SHF_ALLOC 2
#define SHF_EXECINSTR 4
#define SHN_UNDEF 0
#define SHN_LORESERVE 0xff00
#define SHN_ABS 0xfff1
#define STT_SECTION 3
#define STT_FILE 4
#define ELF64_ST_BIND(info) ((info) >> 4)
#define ELF64_ST_TYPE(info) ((info) & 15)
#define STB_LOCAL 0
#define STB_WEAK 2
#if __SIZEOF_POINTER__ == 8
#define ELF64_R_SYM(info) ((info) >> 32)
#define ELF64_R_TYPE(info) ((uint32_t)(info))
#define ELF64_R_ADDEND(rela) ((rela)->r_addend)
#else
#define ELF64_R_SYM(info) ((info) >> 8)
#define ELF64_R_TYPE(info) ((info) & 0xff)
#define ELF64_R_ADDEND(rela) 0
#endif
#define ET_REL 1

#if __SIZEOF_POINTER__ == 8
#define ELF64_IDENT "\177ELF\2\1\1"
#else
#define ELF64_IDENT "\177ELF\1\1\1"
#endif
#define ET_EXEC 2
#define ET_DYN 3
#define PT_LOAD 1
#define PT_DYNAMIC 2
#define PT_INTERP 3
#define PT_PHDR 6
#define PF_X 1
#define PF_W 2
#define PF_R 4

#define DT_NULL 0
#define DT_NEEDED 1
#define DT_PLTRELSZ 2
#define DT_PLTGOT 3
#define DT_HASH 4
#define DT_STRTAB 5
#define DT_SYMTAB 6
#if __SIZEOF_POINTER__ == 8
#define DT_RELA 7
#define DT_RELASZ 8
#else
#define DT_RELA 17 /* DT_REL, DT_RELSZ: the addends are in the places */
#define DT_RELASZ 18
#endif
#define DT_DEBUG 21
#define DT_JMPREL 23
#define DT_INIT_ARRAY 25
#define DT_FINI_ARRAY 26
#define DT_INIT_ARRAYSZ 27
#define DT_FINI_ARRAYSZ 28

/* The auxiliary vector, which follows a program's environment (FreeBSD sys/sys/elf_common.h). */
#define AT_NULL 0
#define AT_PHDR 3
#define AT_PHENT 4
#define AT_PHNUM 5
#define AT_PAGESZ 6
#define AT_BASE 7
#define AT_FLAGS 8
#define AT_ENTRY 9
#define AT_EXECPATH 15
#define AT_COUNT 16 /* one more than the highest here */

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
