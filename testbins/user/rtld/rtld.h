/* What rtld shows of its work: link_map and r_debug are a debugger's way to the loaded objects (FreeBSD sys/sys/link_elf.h). */
#ifndef RTLD_H
#define RTLD_H

#include "sys/elf64.h"
#include "sys/types.h"

struct link_map {
	vaddr_t l_base; /* what is added to the object's own addresses */
	const char *l_name;
	const struct elf64_dyn *l_ld;
	struct link_map *l_next, *l_prev;
};

struct r_debug {
	int r_version;
	struct link_map *r_map;
	void (*r_brk)(struct r_debug *, struct link_map *); /* called at each change */
	enum { RT_CONSISTENT, RT_ADD, RT_DELETE } r_state;
	vaddr_t r_ldbase; /* where rtld itself is */
};

/* The kinds of relocation an object may have, by their numbers on this machine. */
#if defined(__x86_64__)
enum { R_ABSOLUTE = 1, R_GLOB_DAT = 6, R_JUMP_SLOT = 7, R_RELATIVE = 8 };
#define GOT_RESOLVER 2
#elif defined(__aarch64__)
enum { R_ABSOLUTE = 257, R_GLOB_DAT = 1025, R_JUMP_SLOT = 1026, R_RELATIVE = 1027 };
#define GOT_RESOLVER 2
#elif defined(__riscv)
enum { R_ABSOLUTE = 2, R_GLOB_DAT = -1, R_JUMP_SLOT = 5, R_RELATIVE = 3 };
#define GOT_RESOLVER 0
#elif defined(__i386__)
enum { R_ABSOLUTE = 1, R_GLOB_DAT = 6, R_JUMP_SLOT = 7, R_RELATIVE = 8 };
#define GOT_RESOLVER 2
#endif
#define GOT_OBJECT 1

/* What is added to an address: it comes with the relocation, or (REL) is in the place. */
#if __SIZEOF_POINTER__ == 8
#define ADDEND(rela, where) ((rela)->r_addend)
#else
#define ADDEND(rela, where) (*(where))
#endif

#endif
