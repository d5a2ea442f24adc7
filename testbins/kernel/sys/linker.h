/* Kernel files loaded at run time, and the modules in them (FreeBSD sys/sys/linker.h, module.h). */
#ifndef SYS_LINKER_H
#define SYS_LINKER_H

#include "sys/elf64.h"
#include "sys/kernel.h"
#include "sys/param.h"
#include "sys/queue.h"
#include "sys/types.h"

#define LINKER_FILE_NAME 32
#define LINKER_FILE_DEPS 12

TAILQ_HEAD(modulelist, module);

/* A loaded file. The emulator reads the symbol table, and the counts are its providers'. */
struct linker_file {
	TAILQ_ENTRY(linker_file) link;
	int refs;     /* who needs it: each file that depends on it, and kldload */
	int userrefs; /* of them, kldload's */
	int id;
	int loadcnt;  /* the how manieth file that was loaded */
	char filename[LINKER_FILE_NAME];
	char pathname[PATH_MAX];
	vaddr_t address;
	size_t size;
	size_t text_size; /* the beginning of it is read and execute only */
	int ndeps;
	struct linker_file *deps[LINKER_FILE_DEPS];
	struct elf64_sym *symtab; /* values are addresses */
	uint64_t nsyms;
	const char *strtab;
	const struct sysinit **sysinits, **sysuninits;
	int nsysinits, nsysuninits;
	struct modulelist modules;
};
typedef struct linker_file *linker_file_t;

/* ---- what a module says of itself ---- */

enum modeventtype { MOD_LOAD, MOD_UNLOAD, MOD_SHUTDOWN, MOD_QUIESCE };
typedef struct module *module_t;
typedef int (*modeventhand_t)(module_t, int, void *);

struct moduledata {
	const char *name;
	modeventhand_t evhand;
	void *priv;
};
typedef struct moduledata moduledata_t;

struct module {
	TAILQ_ENTRY(module) link;
	TAILQ_ENTRY(module) flink; /* of its file */
	linker_file_t file;
	int id;
	const char *name;
	modeventhand_t handler;
	void *arg;
};

#define MDT_DEPEND 1
#define MDT_MODULE 2
#define MDT_VERSION 3

struct mod_metadata {
	int md_version;
	int md_type; /* MDT_* */
	const void *md_data;
	const char *md_cval;
};

struct mod_depend {
	int md_ver_minimum, md_ver_preferred, md_ver_maximum;
};

#define MODULE_METADATA(uniquifier, type, data, cval)                                       \
	static const struct mod_metadata _mod_metadata##uniquifier = { 1, type, data, cval }; \
	DATA_SET(modmetadata_set, _mod_metadata##uniquifier)

#define MODULE_DEPEND(module, mdepend, vmin, vpref, vmax)                            \
	static const struct mod_depend _##module##_depend_on_##mdepend = { vmin, vpref, vmax }; \
	MODULE_METADATA(_md_##module##_on_##mdepend, MDT_DEPEND, &_##module##_depend_on_##mdepend, #mdepend)

#define DECLARE_MODULE(name, data, sub, order)                       \
	MODULE_METADATA(_md_##name, MDT_MODULE, &data, #name);       \
	SYSINIT(name##module, sub, order, module_register_init, &data)

/* Undone when the file goes, in reverse. Only files that may go have these. */
#ifdef KLD_MODULE
#define SYSUNINIT(uniquifier, sub, ord, function, data)                                      \
	static const struct sysinit uniquifier##_sys_uninit = { sub, ord, function, data }; \
	DATA_SET(sysuninit_set, uniquifier##_sys_uninit)
#endif

/* kern_linker.c */
void module_register_init(const void *data);
linker_file_t linker_make_file(const char *pathname);
void linker_file_release(linker_file_t lf); /* its dependencies too */
int linker_load_dependency(linker_file_t lf, const char *modname);
uint64_t linker_lookup_symbol(linker_file_t lf, const char *name); /* 0: not found */

/* link_elf_obj.c */
int link_elf_load_file(const char *path, linker_file_t *result);
void link_elf_unload_file(linker_file_t lf);

/* the ISA's elf_machdep.c */
struct elf_reloc_context {
	const struct elf64_rela *rela; /* those of the section */
	uint64_t count;
	uint8_t *base; /* of the section */
	const struct elf64_sym *symtab;
};
int elf_reloc(const struct elf_reloc_context *ctx, uint8_t *where, uint32_t type, uint64_t value); /* ENOEXEC: cannot */

#define KLD_MAXNAME 1024
struct kld_file_stat {
	int version; /* sizeof(struct kld_file_stat) */
	int refs;
	int id;
	int modules;
	uint64_t address;
	uint64_t size;
	char name[LINKER_FILE_NAME];
	char pathname[KLD_MAXNAME];
};

struct module_stat {
	int version;
	int refs;
	int id;
	int pad;
	char name[LINKER_FILE_NAME];
};

#endif
