/* Kernel files: loaded, counted, unloaded (FreeBSD sys/kern/kern_linker.c, kern_module.c). One file: a second one would move 660 of the 793 functions of the x86-64 kernel, whose addresses tests and pages show. */
#include "sys/cpuvar.h"
#include "sys/fcntl.h"
#include "sys/linker.h"
#include "sys/malloc.h"
#include "sys/sysproto.h"
#include "sys/systm.h"
#include "sys/vnode.h"

MALLOC_DEFINE(M_LINKER, "linker", "kernel linker");
MALLOC_DEFINE(M_MODULE, "module", "module data structures");

static TAILQ_HEAD(, linker_file) linker_files = TAILQ_HEAD_INITIALIZER(linker_files);
static struct modulelist modules = TAILQ_HEAD_INITIALIZER(modules);
static struct sx kld_sx = SX_INITIALIZER("kernel linker");
static int next_file_id = 1, next_module_id = 1, loadcnt;
static linker_file_t linker_loading; /* whose modules register now */
static int linker_load_error;

/* The kernel's own symbols: left by the boot loader, so not in what is cleared at the start. */
#define LOADER_DATA __attribute__((section(".data")))
const struct elf64_sym *ksymtab LOADER_DATA;
uint64_t ksymtab_count LOADER_DATA;
const char *kstrtab LOADER_DATA;

static const char *
linker_basename(const char *path)
{
	const char *name = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			name = path + 1;
	return (name);
}

linker_file_t
linker_make_file(const char *pathname)
{
	linker_file_t lf = malloc(sizeof(*lf), M_LINKER, M_WAITOK | M_ZERO);

	lf->refs = 1;
	lf->id = next_file_id++;
	lf->loadcnt = ++loadcnt;
	strlcpy(lf->pathname, pathname, sizeof(lf->pathname));
	strlcpy(lf->filename, linker_basename(pathname), sizeof(lf->filename));
	TAILQ_INIT(&lf->modules);
	TAILQ_INSERT_TAIL(&linker_files, lf, link);
	return (lf);
}

static void
linker_init(const void *unused __unused)
{
	linker_file_t lf = linker_make_file("/boot/kernel/kernel");

	lf->address = (vaddr_t)kernel_text_start;
	lf->size = kernel_end - kernel_text_start;
	lf->symtab = (struct elf64_sym *)ksymtab;
	lf->nsyms = ksymtab_count;
	lf->strtab = kstrtab;
}
SYSINIT(linker_init, SI_SUB_LOCK, SI_ORDER_FIRST, linker_init, NULL);

static linker_file_t
linker_find_file_by_id(int fileid)
{
	linker_file_t lf;

	TAILQ_FOREACH(lf, &linker_files, link)
		if (lf->id == fileid)
			return (lf);
	return (NULL);
}

/* "name" or "name.ko". */
static linker_file_t
linker_find_file_by_name(const char *name)
{
	linker_file_t lf;
	char full[LINKER_FILE_NAME];

	name = linker_basename(name);
	snprintf(full, sizeof(full), "%s.ko", name);
	TAILQ_FOREACH(lf, &linker_files, link)
		if (strcmp(lf->filename, name) == 0 || strcmp(lf->filename, full) == 0)
			return (lf);
	return (NULL);
}

/* ---- symbols ---- */

static uint64_t
linker_file_symbol(linker_file_t lf, const char *name)
{
	const struct elf64_sym *end = lf->symtab + lf->nsyms;

	/* Most symbols are local. */
	for (const struct elf64_sym *sym = lf->symtab + 1; sym < end; sym++)
		if (ELF64_ST_BIND(sym->st_info) != STB_LOCAL && sym->st_shndx != SHN_UNDEF && strcmp(lf->strtab + sym->st_name, name) == 0)
			return (sym->st_value);
	return (0);
}

/* A file sees the kernel, itself, and the files it says it depends on. */
uint64_t
linker_lookup_symbol(linker_file_t lf, const char *name)
{
	uint64_t value = linker_file_symbol(lf, name);

	if (value == 0)
		value = linker_file_symbol(TAILQ_FIRST(&linker_files), name);
	for (int i = 0; i < lf->ndeps && value == 0; i++)
		value = linker_file_symbol(lf->deps[i], name);
	return (value);
}

/* ---- SYSINITs and modules of a file ---- */

static void
linker_file_sysinit(linker_file_t lf)
{
	for (int sub = 0; sub <= SI_SUB_LAST; sub++)
		for (int order = SI_ORDER_FIRST; order <= SI_ORDER_ANY; order++)
			for (int i = 0; i < lf->nsysinits; i++)
				if ((int)lf->sysinits[i]->subsystem == sub && (int)lf->sysinits[i]->order == order)
					lf->sysinits[i]->func(lf->sysinits[i]->udata);
}

static void
linker_file_sysuninit(linker_file_t lf)
{
	for (int sub = SI_SUB_LAST; sub >= 0; sub--)
		for (int order = SI_ORDER_ANY; order >= SI_ORDER_FIRST; order--)
			for (int i = 0; i < lf->nsysuninits; i++)
				if ((int)lf->sysuninits[i]->subsystem == sub && (int)lf->sysuninits[i]->order == order)
					lf->sysuninits[i]->func(lf->sysuninits[i]->udata);
}

static int
module_event(module_t mod, int event)
{
	return (mod->handler(mod, event, mod->arg));
}

static void
module_release(module_t mod)
{
	TAILQ_REMOVE(&modules, mod, link);
	TAILQ_REMOVE(&mod->file->modules, mod, flink);
	free(mod, M_MODULE);
}

/* SYSINIT of DECLARE_MODULE. */
void
module_register_init(const void *arg)
{
	const struct moduledata *data = arg;
	module_t mod = malloc(sizeof(*mod), M_MODULE, M_WAITOK | M_ZERO);
	int error;

	mod->id = next_module_id++;
	mod->name = data->name;
	mod->handler = data->evhand;
	mod->arg = data->priv;
	mod->file = linker_loading;
	TAILQ_INSERT_TAIL(&modules, mod, link);
	TAILQ_INSERT_TAIL(&mod->file->modules, mod, flink);
	if ((error = module_event(mod, MOD_LOAD)) != 0) {
		module_event(mod, MOD_UNLOAD);
		printf("module_register_init: MOD_LOAD (%s, %p, %p) error %d\n", data->name, (void *)data->evhand, data->priv, error);
		module_release(mod);
		linker_load_error = error;
	}
}

/* ---- loading and unloading ---- */

static int linker_file_unload(linker_file_t lf);

void
linker_file_release(linker_file_t lf)
{
	TAILQ_REMOVE(&linker_files, lf, link);
	link_elf_unload_file(lf);
	for (int i = 0; i < lf->ndeps; i++)
		linker_file_unload(lf->deps[i]);
	free(lf, M_LINKER);
}

/* name: a path, or what is looked for in /boot/kernel. */
static int
linker_load_module(const char *name, linker_file_t *result)
{
	linker_file_t lf, outer = linker_loading;
	char *path;
	int error;

	if (linker_find_file_by_name(name) != NULL)
		return (EEXIST);
	path = malloc(PATH_MAX, M_LINKER, M_WAITOK);
	if (strchr(name, '/') != NULL)
		strlcpy(path, name, PATH_MAX);
	else {
		snprintf(path, PATH_MAX, "/boot/kernel/%s", name);
		if (strlen(name) < 3 || strcmp(name + strlen(name) - 3, ".ko") != 0)
			strlcpy(path + strlen(path), ".ko", 4);
	}
	error = link_elf_load_file(path, &lf);
	free(path, M_LINKER);
	if (error != 0)
		return (error);
	linker_loading = lf;
	linker_load_error = 0;
	linker_file_sysinit(lf);
	linker_loading = outer;
	if (linker_load_error != 0 && TAILQ_EMPTY(&lf->modules)) {
		linker_file_sysuninit(lf);
		linker_file_release(lf);
		return (ENOEXEC);
	}
	dtrace_kld_load(lf);
	CPU_STATS_ADD(sysinfo, modload, 1);
	*result = lf;
	return (0);
}

/* While lf is loaded, so is the file that has modname. */
int
linker_load_dependency(linker_file_t lf, const char *modname)
{
	linker_file_t dep = linker_find_file_by_name(modname);
	int error;

	if (lf->ndeps == LINKER_FILE_DEPS)
		return (ENOEXEC);
	if (dep != NULL)
		dep->refs++;
	else if ((error = linker_load_module(modname, &dep)) != 0) {
		printf("KLD %s: depends on %s - not available or version mismatch\n", lf->filename, modname);
		return (error);
	}
	lf->deps[lf->ndeps++] = dep;
	return (0);
}

/* One reference less; without any the file goes, if neither a probe nor a module of it minds. */
static int
linker_file_unload(linker_file_t lf)
{
	module_t mod, next;
	int error;

	if (lf->refs > 1) {
		lf->refs--;
		return (0);
	}
	if (dtrace_kld_unload_try(lf) != 0)
		return (EBUSY);
	TAILQ_FOREACH(mod, &lf->modules, flink)
		if ((error = module_event(mod, MOD_QUIESCE)) != 0 && error != EOPNOTSUPP)
			goto refused;
	TAILQ_FOREACH(mod, &lf->modules, flink)
		if ((error = module_event(mod, MOD_UNLOAD)) != 0)
			goto refused;
	TAILQ_FOREACH_SAFE(mod, &lf->modules, flink, next)
		module_release(mod);
	linker_file_sysuninit(lf);
	linker_file_release(lf);
	return (0);

refused: /* its probes went; they may come back */
	dtrace_kld_load(lf);
	return (error);
}

static int
kern_kldload(struct thread *td, const char *name)
{
	linker_file_t lf;
	int error;

	if (td->td_proc->p_ucred->cr_uid != 0)
		return (EPERM);
	sx_xlock(&kld_sx);
	error = linker_load_module(name, &lf);
	if (error == 0) {
		lf->userrefs++;
		td->td_retval[0] = lf->id;
	}
	sx_xunlock(&kld_sx);
	return (error);
}

static int
kern_kldunload(struct thread *td, int fileid)
{
	linker_file_t lf;
	int error = 0;

	if (td->td_proc->p_ucred->cr_uid != 0)
		return (EPERM);
	sx_xlock(&kld_sx);
	if ((lf = linker_find_file_by_id(fileid)) == NULL)
		error = ENOENT;
	else if (lf->userrefs == 0) {
		printf("kldunload: attempt to unload file that was loaded by the kernel\n");
		error = EBUSY;
	} else {
		lf->userrefs--;
		if ((error = linker_file_unload(lf)) != 0)
			lf->userrefs++;
	}
	sx_xunlock(&kld_sx);
	return (error);
}

/* What the boot loader was told to load: each line `name_load="YES"' of /boot/loader.conf. */
static void
linker_preload(const void *unused __unused)
{
	static const char suffix[] = "_load=\"YES\"";
	char text[512], *line, *end;
	struct nameidata nd;
	linker_file_t lf;
	size_t left = sizeof(text) - 1;
	int flags = FREAD, error;

	NDINIT(&nd, LOOKUP, FOLLOW, UIO_SYSSPACE, "/boot/loader.conf");
	if (vn_open(&nd, &flags, 0, NULL) != 0)
		return;
	error = vn_rdwr(UIO_READ, nd.ni_vp, text, sizeof(text) - 1, 0, &left, curthread);
	vn_close(nd.ni_vp, flags, curthread);
	text[sizeof(text) - 1 - left] = '\0';
	for (line = text; error == 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		if (end - line < (ptrdiff_t)sizeof(suffix) || strcmp(end - (sizeof(suffix) - 1), suffix) != 0)
			continue;
		*(end - (sizeof(suffix) - 1)) = '\0';
		if (linker_load_module(line, &lf) == 0)
			lf->userrefs++;
	}
}
SYSINIT(linker_preload, SI_SUB_ROOT, SI_ORDER_ANY, linker_preload, NULL);

/* ---- system calls ---- */

int
sys_kldload(struct thread *td, struct kldload_args *uap)
{
	char *path = malloc(PATH_MAX, M_TEMP, M_WAITOK);
	int error = copyinstr(uap->file, path, PATH_MAX, NULL);

	if (error == 0)
		error = kern_kldload(td, path);
	free(path, M_TEMP);
	return (error);
}

int
sys_kldunload(struct thread *td, struct kldunload_args *uap)
{
	return (kern_kldunload(td, uap->fileid));
}

int
sys_kldunloadf(struct thread *td, struct kldunloadf_args *uap)
{
	return (kern_kldunload(td, uap->fileid));
}

int
sys_kldfind(struct thread *td, struct kldfind_args *uap)
{
	char name[LINKER_FILE_NAME];
	linker_file_t lf;
	int error = copyinstr(uap->file, name, sizeof(name), NULL);

	if (error != 0)
		return (error);
	if ((lf = linker_find_file_by_name(name)) == NULL)
		return (ENOENT);
	td->td_retval[0] = lf->id;
	return (0);
}

/* The file after this one, 0 after the last; the first for 0. */
int
sys_kldnext(struct thread *td, struct kldnext_args *uap)
{
	linker_file_t lf = TAILQ_FIRST(&linker_files);

	if (uap->fileid != 0) {
		if ((lf = linker_find_file_by_id(uap->fileid)) == NULL)
			return (ENOENT);
		lf = TAILQ_NEXT(lf, link);
	}
	td->td_retval[0] = lf != NULL ? lf->id : 0;
	return (0);
}

int
sys_kldstat(struct thread *td, struct kldstat_args *uap)
{
	linker_file_t lf = linker_find_file_by_id(uap->fileid);
	struct kld_file_stat *stat;
	int error;

	if (lf == NULL)
		return (ENOENT);
	stat = malloc(sizeof(*stat), M_TEMP, M_WAITOK | M_ZERO);
	error = copyin(uap->stat, &stat->version, sizeof(stat->version));
	if (error == 0 && stat->version != sizeof(*stat))
		error = EINVAL;
	if (error == 0) {
		stat->refs = lf->refs;
		stat->id = lf->id;
		stat->address = lf->address;
		stat->size = lf->size;
		strlcpy(stat->name, lf->filename, sizeof(stat->name));
		strlcpy(stat->pathname, lf->pathname, sizeof(stat->pathname));
		error = copyout(stat, uap->stat, sizeof(*stat));
		td->td_retval[0] = 0;
	}
	free(stat, M_TEMP);
	return (error);
}

int
sys_kldfirstmod(struct thread *td, struct kldfirstmod_args *uap)
{
	linker_file_t lf = linker_find_file_by_id(uap->fileid);
	module_t mod;

	if (lf == NULL)
		return (ENOENT);
	mod = TAILQ_FIRST(&lf->modules);
	td->td_retval[0] = mod != NULL ? mod->id : 0;
	return (0);
}

static module_t
module_lookupbyid(int modid)
{
	module_t mod;

	TAILQ_FOREACH(mod, &modules, link)
		if (mod->id == modid)
			return (mod);
	return (NULL);
}

int
sys_modfnext(struct thread *td, struct modfnext_args *uap)
{
	module_t mod = module_lookupbyid(uap->modid);

	if (mod == NULL)
		return (ENOENT);
	mod = TAILQ_NEXT(mod, flink);
	td->td_retval[0] = mod != NULL ? mod->id : 0;
	return (0);
}

int
sys_modfind(struct thread *td, struct modfind_args *uap)
{
	char name[LINKER_FILE_NAME];
	module_t mod;
	int error = copyinstr(uap->name, name, sizeof(name), NULL);

	if (error != 0)
		return (error);
	TAILQ_FOREACH(mod, &modules, link)
		if (strcmp(mod->name, name) == 0) {
			td->td_retval[0] = mod->id;
			return (0);
		}
	return (ENOENT);
}

int
sys_modstat(struct thread *td __unused, struct modstat_args *uap)
{
	module_t mod = module_lookupbyid(uap->modid);
	struct module_stat stat = { .refs = 1 };
	int error;

	if (mod == NULL)
		return (ENOENT);
	if ((error = copyin(uap->stat, &stat.version, sizeof(stat.version))) != 0)
		return (error);
	if (stat.version != sizeof(stat))
		return (EINVAL);
	stat.id = mod->id;
	strlcpy(stat.name, mod->name, sizeof(stat.name));
	return (copyout(&stat, uap->stat, sizeof(stat)));
}
