/*
 * scanner.c as illumos has it: a driver that registers a provider and a handler of breakpoints, and that walks the
 * symbols of a module; for tests of `trapline check --object` with illumos_trap.S. Signals in copies of fasttrap, too.
 *
 * BUGGY adds a mistake beside those of scanner.c: a signal that must wait does not.
 */
#define fbt_invop freebsd_invop
#define fbt_patch_tracepoint set
#define fbtp_probenext fbtp_next
#include "scanner.c"
#undef fbt_invop

struct regs {
	word r_savfp, r_savpc;
#if defined(__x86_64__)
	word r_rdi, r_rsi, r_rdx, r_rcx, r_r8, r_r9, r_rax, r_rbx, r_rbp, r_r10, r_r11, r_r12, r_r13, r_r14, r_r15;
	word r_err, r_rip, r_cs, r_rfl, r_rsp, r_ss;
#define r_pc r_rip
#else
	word r_edi, r_esi, r_ebp, r_esp, r_ebx, r_edx, r_ecx, r_eax, r_eip, r_cs, r_efl, r_uesp, r_ss;
#define r_pc r_eip
#endif
};

/* Modules: ELF's tables, of which only the members that are read have names here. */
typedef struct {
	uint32_t st_name;
#if defined(__x86_64__)
	uint8_t st_info, st_other[3];
	uint64_t st_value, st_size;
#else
	uint32_t st_value, st_size;
	uint8_t st_info, st_other[3];
#endif
} Sym;
typedef struct {
	word sh_addr, sh_entsize;
} Shdr;
struct module {
	int fbt_nentries, nsyms;
	const char *strings;
	Shdr *symhdr;
};
struct modctl {
	struct module *mod_mp;
	const char *mod_modname;
	int mod_loadcnt, mod_loaded, mod_nenabled;
};

typedef struct {
	void (*dtps_provide)(void *, void *);
	void (*dtps_provide_module)(void *, struct modctl *);
	void (*dtps_enable)(void *, uint32_t, fbt_probe_t *), (*dtps_disable)(void *, uint32_t, fbt_probe_t *);
} dtrace_pops_t;
extern int dtrace_register(const char *, void *, uint32_t, void *, dtrace_pops_t *, void *, word *);
extern void dtrace_invop_add(int (*)(word, word *, word));
extern char *strstr(const char *, const char *);
extern int mod_install(void *);
static word identifier;

int
fbt_excluded(const char *name)
{
	if (strstr(name, "dtrace_") == name && strstr(name, "dtrace_safe_") != name)
		return 1;
	return strstr(name, "kdi_") == name || strstr(name, "_kdi_") || !strcmp(name, "_init") || !strcmp(name, "_fini");
}

static int
fbt_invop(word address, word *stack, word value)
{
	for (fbt_probe_t *record = records; record; record = record->fbtp_all) {
		if ((word)record->fbtp_patchpoint != address)
			continue;
#if defined(__x86_64__)
		stack += 2;	/* over the saved frame pointer and pc */
#endif
		if (record->fbtp_roffset)
			dtrace_probe(record->fbtp_id, record->fbtp_roffset, value, 0, 0, 0);
		else
			dtrace_probe(record->fbtp_id, stack[1], stack[2], stack[3], stack[4], stack[5]);
		return record->fbtp_rval;
	}
	return 0;
}

static void
provide(void *argument, struct modctl *control)
{
	struct module *module = control->mod_mp;
	struct linker_file file = {control->mod_loadcnt};

	(void)argument;
	for (int i = 1; i < module->nsyms; i++) {
		Sym *symbol = (Sym *)(module->symhdr->sh_addr + i * module->symhdr->sh_entsize);
		linker_symval_t found = {symbol->st_size, module->strings + symbol->st_name, (uint8_t *)(word)symbol->st_value};
		/* A function, and no weak one. */
		if ((symbol->st_info & 15) == 2 && symbol->st_info >> 4 != 2)
			fbt_provide_module_function(&file, i, &found, (void *)control->mod_modname);
	}
}

static void
enable(void *argument, uint32_t id, fbt_probe_t *record)
{
	(void)argument, (void)id;
	for (; record; record = record->fbtp_next)
		set(record, record->fbtp_patchval);
}

static void
disable(void *argument, uint32_t id, fbt_probe_t *record)
{
	(void)argument, (void)id;
	for (; record; record = record->fbtp_next)
		set(record, record->fbtp_savedval);
}

static dtrace_pops_t functions = {0, provide, enable, disable};

static int
attach(void *device, int command)
{
	(void)device;
	if (command)
		return -1;
	dtrace_invop_add(fbt_invop);
	return dtrace_register("fbt", 0, 2, 0, &functions, 0, &identifier);
}

static struct dev_ops {
	int devo_rev;
	int (*devo_attach)(void *, int);
} operations = {4, attach};
static struct modldrv {
	const char *drv_linkinfo;
	struct dev_ops *drv_dev_ops;
} driver = {"a driver", &operations};
static struct modlinkage {
	int ml_rev;
	void *ml_linkage[2];
} linkage = {1, {&driver, 0}};

int
_init(void)
{
	return mod_install(&linkage);
}

/* Signals while a copy of an instruction is executed: the space has a copy and a jump back, and a second copy. */
struct _klwp {
	struct regs *lwp_regs;
};
extern struct kthread {
	struct _klwp *t_lwp;
	union {
		struct {
			uint8_t t_dtrace_on, t_dtrace_step, t_dtrace_ast, t_dtrace_reg;
		};
		word t_dtrace_ft;
	};
	word t_dtrace_pc, t_dtrace_npc, t_dtrace_scrpc, t_dtrace_astpc, t_dtrace_regv;
} trapline_thread;

static int
outside(word pc)
{
	struct kthread *t = &trapline_thread;

	if (pc >= t->t_dtrace_scrpc && pc <= t->t_dtrace_astpc + (t->t_dtrace_npc - t->t_dtrace_pc))
		return 0;
	t->t_dtrace_ft = 0;
	return 1;
}

void
dtrace_safe_synchronous_signal(void)
{
	struct kthread *t = &trapline_thread;
	struct regs *saved = t->t_lwp->lwp_regs;

	if (outside(saved->r_pc) || (saved->r_pc != t->t_dtrace_scrpc && saved->r_pc != t->t_dtrace_astpc))
		return;
	saved->r_pc = t->t_dtrace_pc;
	t->t_dtrace_ft = 0;
}

int
dtrace_safe_defer_signal(void)
{
	struct kthread *t = &trapline_thread;
	struct regs *saved = t->t_lwp->lwp_regs;
	word behind = t->t_dtrace_scrpc + (t->t_dtrace_npc - t->t_dtrace_pc);

#ifdef BUGGY
	behind--;
#endif
	if (outside(saved->r_pc))
		return 0;
	if (saved->r_pc >= behind && saved->r_pc < t->t_dtrace_astpc) {
#if defined(__x86_64__)
		if (t->t_dtrace_reg == 14 && saved->r_pc == behind)
			saved->r_rax = t->t_dtrace_regv;
#endif
		saved->r_pc = t->t_dtrace_npc;
		t->t_dtrace_ft = 0;
		return 0;
	}
	if (!t->t_dtrace_step) {
		saved->r_pc += t->t_dtrace_astpc - t->t_dtrace_scrpc;
		t->t_dtrace_step = 1;
	}
	return t->t_dtrace_ast = 1;
}
