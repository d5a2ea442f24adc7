/*
 * The run-time linker: maps the shared objects a program needs, relocates them, and runs their constructors
 * (FreeBSD libexec/rtld-elf). Functions are bound when they are first called.
 */
#include "libc.h"
#include "rtld.h"
#include "sys/param.h"

#define MAX_OBJECTS 16

struct obj {
	struct link_map map; /* first: what GOT[1] and a debugger know it by */
	const struct elf64_sym *symtab;
	const char *strtab;
	const uint32_t *hash; /* nbucket, nchain, the buckets, the chains */
	const struct elf64_rela *rela, *jmprel;
	size_t nrela, njmprel;
	vaddr_t *pltgot;
	void (**init_array)(void), (**fini_array)(void);
	size_t ninit, nfini;
	struct obj *needed[MAX_OBJECTS];
	int nneeded;
	bool init_done;
};

extern const struct elf64_ehdr __ehdr_start; /* by the linker: where rtld's own file begins */
extern const struct elf64_dyn _DYNAMIC[];
void rtld_start(void);
void _rtld_bind_start(void);
vaddr_t _rtld(vaddr_t *sp, void (**exit_proc)(void));
vaddr_t _rtld_bind(struct obj *obj, size_t index);
void r_debug_state(struct r_debug *debug, struct link_map *map);

struct r_debug r_debug;
static struct obj objects[MAX_OBJECTS]; /* the program, then what is needed, in the order of the search for symbols */
static int nobjects;
static struct obj obj_rtld;		/* rtld itself; no one's symbols are looked for in it */
static struct obj *initialised[MAX_OBJECTS];
static int ninitialised;

static void
rtld_die(const char *name, const char *what, const char *which)
{
	char text[256];
	int n = snprintf(text, sizeof(text), "ld-elf.so.1: %s: %s%s\n", name, what, which);

	write(2, text, n);
	_exit(1);
}

/* A debugger or the pid provider has a breakpoint here, to learn of new objects. */
__noinline void
r_debug_state(struct r_debug *debug __unused, struct link_map *map __unused)
{
	__asm__ volatile("");
}

static void
linkmap_add(struct obj *obj)
{
	struct link_map *last;

	if (r_debug.r_map == NULL) {
		r_debug.r_map = &obj->map;
		return;
	}
	for (last = r_debug.r_map; last->l_next != NULL; last = last->l_next)
		continue;
	last->l_next = &obj->map;
	obj->map.l_prev = last;
}

/* Takes an object's dynamic section apart. */
static void
digest_dynamic(struct obj *obj)
{
	vaddr_t base = obj->map.l_base;

	for (const struct elf64_dyn *dyn = obj->map.l_ld; dyn->d_tag != DT_NULL; dyn++) {
		vaddr_t address = base + dyn->d_val;

		switch (dyn->d_tag) {
		case DT_HASH: obj->hash = (const uint32_t *)address; break;
		case DT_SYMTAB: obj->symtab = (const struct elf64_sym *)address; break;
		case DT_STRTAB: obj->strtab = (const char *)address; break;
		case DT_RELA: obj->rela = (const struct elf64_rela *)address; break;
		case DT_RELASZ: obj->nrela = dyn->d_val / sizeof(*obj->rela); break;
		case DT_JMPREL: obj->jmprel = (const struct elf64_rela *)address; break;
		case DT_PLTRELSZ: obj->njmprel = dyn->d_val / sizeof(*obj->jmprel); break;
		case DT_PLTGOT: obj->pltgot = (vaddr_t *)address; break;
		case DT_INIT_ARRAY: obj->init_array = (void (**)(void))address; break;
		case DT_INIT_ARRAYSZ: obj->ninit = dyn->d_val / sizeof(*obj->init_array); break;
		case DT_FINI_ARRAY: obj->fini_array = (void (**)(void))address; break;
		case DT_FINI_ARRAYSZ: obj->nfini = dyn->d_val / sizeof(*obj->fini_array); break;
		/* The program's own dynamic section is where a debugger begins to look. */
		case DT_DEBUG: ((struct elf64_dyn *)dyn)->d_val = (vaddr_t)&r_debug; break;
		}
	}
}

/* ---- loading ---- */

static int
protection(uint32_t flags)
{
	return ((flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0));
}

/* Maps one segment; what its last page has beyond the file's part are zeros. */
static void
map_segment(const char *path, int fd, vaddr_t base, const struct elf64_phdr *phdr)
{
	vaddr_t start = base + rounddown2(phdr->p_vaddr, PAGE_SIZE), file_end = base + phdr->p_vaddr + phdr->p_filesz;
	vaddr_t mapped = roundup2(file_end, PAGE_SIZE), end = base + phdr->p_vaddr + phdr->p_memsz;
	int prot = protection(phdr->p_flags);

	if (mmap((void *)start, mapped - start, prot, MAP_PRIVATE | MAP_FIXED, fd, rounddown2(phdr->p_offset, PAGE_SIZE)) == (void *)-1)
		rtld_die(path, "mmap: ", strerror(errno));
	if (end <= file_end)
		return;
	memset((void *)file_end, 0, mapped - file_end);
	if (end > mapped && mmap((void *)mapped, end - mapped, prot, MAP_PRIVATE | MAP_FIXED | MAP_ANON, -1, 0) == (void *)-1)
		rtld_die(path, "mmap: ", strerror(errno));
}

static void
map_object(const char *path, int fd, struct obj *obj)
{
	const struct elf64_ehdr *hdr = mmap(NULL, PAGE_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
	const struct elf64_phdr *phdr = (const struct elf64_phdr *)(hdr + 1);
	vaddr_t top = 0;

	if (hdr == (void *)-1)
		rtld_die(path, "mmap: ", strerror(errno));
	if (memcmp(hdr->e_ident, ELF64_IDENT, sizeof(ELF64_IDENT) - 1) != 0)
		rtld_die(path, "invalid file format", "");
	if (hdr->e_type != ET_DYN || hdr->e_machine != ELF_MACHINE || hdr->e_phoff != sizeof(*hdr) ||
	    sizeof(*hdr) + hdr->e_phnum * sizeof(*phdr) > PAGE_SIZE)
		rtld_die(path, "unsupported file type", "");
	for (int i = 0; i < hdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD)
			top = roundup2(phdr[i].p_vaddr + phdr[i].p_memsz, PAGE_SIZE);
	/* The place for all of it, with one call; the segments then take their parts. */
	void *place = mmap(NULL, top, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);

	if (place == (void *)-1)
		rtld_die(path, "mmap: ", strerror(errno));
	obj->map.l_base = (vaddr_t)place;
	for (int i = 0; i < hdr->e_phnum; i++)
		if (phdr[i].p_type == PT_LOAD)
			map_segment(path, fd, obj->map.l_base, &phdr[i]);
		else if (phdr[i].p_type == PT_DYNAMIC)
			obj->map.l_ld = (const struct elf64_dyn *)(obj->map.l_base + phdr[i].p_vaddr);
	if (obj->map.l_ld == NULL)
		rtld_die(path, "no dynamic section", "");
	munmap((void *)hdr, PAGE_SIZE);
}

static struct obj *
load_object(const char *name, const struct obj *wanted_by)
{
	static const char *const directories[] = { "/lib", "/usr/lib" };
	static char paths[MAX_OBJECTS][64];
	struct obj *obj;
	char *path = paths[nobjects];
	int fd = -1;

	for (int i = 0; i < nobjects; i++)
		if (strcmp(basename(objects[i].map.l_name), name) == 0)
			return (&objects[i]);
	if (nobjects == MAX_OBJECTS)
		rtld_die(name, "too many shared objects", "");
	for (size_t i = 0; i < nitems(directories) && fd < 0; i++) {
		snprintf(path, sizeof(paths[0]), "%s/%s", directories[i], name);
		fd = open(path, O_RDONLY);
	}
	if (fd < 0) {
		snprintf(paths[0], sizeof(paths[0]), "Shared object \"%s\" not found, required by ", name);
		rtld_die(name, paths[0], wanted_by->map.l_name);
	}
	obj = &objects[nobjects++];
	obj->map.l_name = path;
	map_object(path, fd, obj);
	close(fd);
	digest_dynamic(obj);
	linkmap_add(obj);
	return (obj);
}

/* Each object's needs in turn: the list grows while it is walked. */
static void
load_needed_objects(void)
{
	for (int i = 0; i < nobjects; i++) {
		struct obj *obj = &objects[i];

		for (const struct elf64_dyn *dyn = obj->map.l_ld; dyn->d_tag != DT_NULL; dyn++)
			if (dyn->d_tag == DT_NEEDED)
				obj->needed[obj->nneeded++] = load_object(obj->strtab + dyn->d_val, obj);
	}
}

/* ---- symbols ---- */

static uint32_t
elf_hash(const char *name)
{
	uint32_t h = 0, g;

	for (; *name != '\0'; name++) {
		h = (h << 4) + (uint8_t)*name;
		g = h & 0xf0000000;
		h = (h ^ g >> 24) & ~g;
	}
	return (h);
}

static const struct elf64_sym *
symlook_obj(const struct obj *obj, const char *name, uint32_t hash)
{
	const uint32_t *buckets = obj->hash + 2, *chains = buckets + obj->hash[0];

	for (uint32_t i = buckets[hash % obj->hash[0]]; i != 0; i = chains[i]) {
		const struct elf64_sym *sym = &obj->symtab[i];

		if (sym->st_shndx != SHN_UNDEF && strcmp(obj->strtab + sym->st_name, name) == 0)
			return (sym);
	}
	return (NULL);
}

/* The address of the symbol a relocation names: the first that defines it. A weak one may be nowhere: 0. */
static vaddr_t
find_symdef(const struct obj *obj, uint32_t number)
{
	const struct elf64_sym *ref = &obj->symtab[number], *def;
	const char *name = obj->strtab + ref->st_name;
	uint32_t hash = elf_hash(name);

	for (int i = 0; i < nobjects; i++)
		if ((def = symlook_obj(&objects[i], name, hash)) != NULL)
			return (objects[i].map.l_base + def->st_value);
	if (ref->st_info >> 4 != STB_WEAK)
		rtld_die(obj->map.l_name, "Undefined symbol: ", name);
	return (0);
}

/* ---- relocation ---- */

static void
relocate_object(struct obj *obj)
{
	vaddr_t base = obj->map.l_base;
	char number[16];

	for (size_t i = 0; i < obj->nrela; i++) {
		const struct elf64_rela *rela = &obj->rela[i];
		vaddr_t *where = (vaddr_t *)(base + rela->r_offset);
		int type = ELF64_R_TYPE(rela->r_info);

		if (type == R_RELATIVE)
			*where = base + ADDEND(rela, where);
		else if (type == R_ABSOLUTE)
			*where = find_symdef(obj, ELF64_R_SYM(rela->r_info)) + ADDEND(rela, where);
		else if (type == R_GLOB_DAT)
			*where = find_symdef(obj, ELF64_R_SYM(rela->r_info)) + ELF64_R_ADDEND(rela);
		else if (type != R_JUMP_SLOT) { /* those are below, though RISC-V's linker counts them here too */
			snprintf(number, sizeof(number), "%d", type);
			rtld_die(obj->map.l_name, "Unsupported relocation type ", number);
		}
	}
	/* A function not yet called: its entry leads to the code that asks for it to be bound. */
	for (size_t i = 0; i < obj->njmprel; i++)
		*(vaddr_t *)(base + obj->jmprel[i].r_offset) += base;
	if (obj->pltgot != NULL && obj->njmprel > 0) {
		obj->pltgot[GOT_OBJECT] = (vaddr_t)obj;
		obj->pltgot[GOT_RESOLVER] = (vaddr_t)_rtld_bind_start;
	}
}

/* The first call of a function: from now on the PLT goes there by itself. */
vaddr_t
_rtld_bind(struct obj *obj, size_t index)
{
	const struct elf64_rela *rela = &obj->jmprel[index];
	vaddr_t target = find_symdef(obj, ELF64_R_SYM(rela->r_info)) + ELF64_R_ADDEND(rela);

	*(vaddr_t *)(obj->map.l_base + rela->r_offset) = target;
	return (target);
}

/* ---- beginning and end ---- */

/* What an object needs begins before it. */
static void
call_init(struct obj *obj)
{
	if (obj->init_done)
		return;
	obj->init_done = true;
	for (int i = 0; i < obj->nneeded; i++)
		call_init(obj->needed[i]);
	for (size_t i = 0; i < obj->ninit; i++)
		obj->init_array[i]();
	initialised[ninitialised++] = obj;
}

/* At exit: the destructors, in the order opposite to that of the constructors. */
static void
rtld_exit(void)
{
	while (ninitialised > 0) {
		struct obj *obj = initialised[--ninitialised];

		for (size_t i = obj->nfini; i > 0; i--)
			obj->fini_array[i - 1]();
	}
}

static vaddr_t *
after_null(vaddr_t *vector)
{
	while (*vector++ != 0)
		continue;
	return (vector);
}

/* The auxiliary vector by its tags. */
static void
digest_auxv(vaddr_t *sp, vaddr_t aux[AT_COUNT])
{
	vaddr_t *auxv = after_null(after_null(sp + 1 + sp[0]));

	for (; auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] < AT_COUNT)
			aux[auxv[0]] = auxv[1];
}

static void
init_rtld(void)
{
	obj_rtld.map.l_base = (vaddr_t)&__ehdr_start;
	obj_rtld.map.l_ld = _DYNAMIC;
	obj_rtld.map.l_name = "/libexec/ld-elf.so.1";
	digest_dynamic(&obj_rtld);
	relocate_object(&obj_rtld);
}

static void
init_program(const vaddr_t aux[AT_COUNT], const char *name)
{
	const struct elf64_phdr *phdr = (const struct elf64_phdr *)aux[AT_PHDR];
	struct obj *obj = &objects[nobjects++];

	obj->map.l_name = name;
	for (vaddr_t i = 0; i < aux[AT_PHNUM]; i++)
		if (phdr[i].p_type == PT_PHDR)
			obj->map.l_base = aux[AT_PHDR] - phdr[i].p_vaddr;
	for (vaddr_t i = 0; i < aux[AT_PHNUM]; i++)
		if (phdr[i].p_type == PT_DYNAMIC)
			obj->map.l_ld = (const struct elf64_dyn *)(obj->map.l_base + phdr[i].p_vaddr);
	digest_dynamic(obj);
	linkmap_add(obj);
}

/* The program's entry point; *exit_proc is to be called at its exit. */
vaddr_t
_rtld(vaddr_t *sp, void (**exit_proc)(void))
{
	vaddr_t aux[AT_COUNT] = { 0 };

	init_rtld();
	digest_auxv(sp, aux);
	if (aux[AT_ENTRY] == (vaddr_t)rtld_start)
		rtld_die("usage", "the kernel runs it for a program that names it as its interpreter", "");
	r_debug.r_version = 1;
	r_debug.r_brk = r_debug_state;
	r_debug.r_ldbase = obj_rtld.map.l_base;
	r_debug.r_state = RT_ADD;
	init_program(aux, aux[AT_EXECPATH] != 0 ? (const char *)aux[AT_EXECPATH] : (const char *)sp[1]);
	load_needed_objects();
	linkmap_add(&obj_rtld);
	for (int i = nobjects - 1; i >= 0; i--)
		relocate_object(&objects[i]);
	r_debug.r_state = RT_CONSISTENT;
	r_debug_state(&r_debug, r_debug.r_map);
	call_init(&objects[0]);
	*exit_proc = rtld_exit;
	return (aux[AT_ENTRY]);
}
