/*
 * The start-up object of an object with probes: registers them with the kernel at load time (libdtrace's drti.c). Its DOF is
 * made here, from the records of usdt.h.
 */
#include "libc.h"
#include "sys/dof.h"
#include "usdt.h"

#define MAX_PROBES 64
#define STRINGS 4096

enum { SECTION_STRTAB, SECTION_PROBES, SECTION_PRARGS, SECTION_PROFFS, SECTION_PRENOFFS, SECTION_PROVIDER, SECTIONS };

extern struct usdt_site __start_set_usdt[] __attribute__((visibility("hidden")));
extern struct usdt_site __stop_set_usdt[] __attribute__((visibility("hidden")));
extern const char usdt_module[] __attribute__((visibility("hidden"))); /* the object's name; defined at link time */

static struct {
	struct dof_hdr header;
	struct dof_sec sections[SECTIONS];
	struct dof_provider provider;
	struct dof_probe probes[MAX_PROBES] __attribute__((aligned(8)));
	uint32_t offsets[MAX_PROBES], enoffsets[MAX_PROBES];
	uint8_t arguments[8];
	char strings[STRINGS];
} dof __attribute__((aligned(8)));

static size_t nprobes, noffsets, nenoffsets, nstrings = 1; /* the first string is empty */
static int generation = -1;

static uint32_t
add_string(const char *s)
{
	size_t place = nstrings, size = strlen(s) + 1;

	if (place + size > STRINGS)
		return (0);
	memcpy(dof.strings + place, s, size);
	nstrings += size;
	return (place);
}

/* Double underscores are hyphens in probe names, as dtrace -G makes them. */
static uint32_t
add_probe_name(const char *name)
{
	char text[64];
	size_t n = 0;

	while (*name != '\0' && n < sizeof(text) - 1)
		if (name[0] == '_' && name[1] == '_') {
			text[n++] = '-';
			name += 2;
		} else
			text[n++] = *name++;
	text[n] = '\0';
	return (add_string(text));
}

static bool
same_probe(const struct usdt_site *a, const struct usdt_site *b)
{
	return (a->function == b->function && strcmp(a->name, b->name) == 0);
}

static void
add_types(struct dof_probe *probe, const struct usdt_site *site)
{
	const char *type = site->types;

	probe->dofpr_nargc = probe->dofpr_xargc = site->nargs;
	for (unsigned long i = 0; i < site->nargs; i++, type += strlen(type) + 1) {
		uint32_t place = add_string(type);

		if (i == 0)
			probe->dofpr_nargv = probe->dofpr_xargv = place;
	}
}

/* A probe: all its places in one function, and the questions whether it is enabled. */
static void
add_probe(const struct usdt_site *first)
{
	struct dof_probe *probe = &dof.probes[nprobes++];

	probe->dofpr_addr = first->function;
	probe->dofpr_func = add_string(first->function_name);
	probe->dofpr_name = add_probe_name(first->name);
	probe->dofpr_offidx = noffsets;
	probe->dofpr_enoffidx = nenoffsets;
	for (const struct usdt_site *site = first; site < __stop_set_usdt; site++) {
		if (!same_probe(site, first))
			continue;
		if (site->is_enabled) {
			dof.enoffsets[nenoffsets++] = site->address - site->function;
			probe->dofpr_nenoffs++;
		} else {
			dof.offsets[noffsets++] = site->address - site->function;
			if (probe->dofpr_noffs++ == 0)
				add_types(probe, site);
		}
	}
}

static void
set_section(int index, uint32_t type, uint32_t align, uint32_t entry, void *start, size_t size)
{
	dof.sections[index] = (struct dof_sec){
		.dofs_type = type,
		.dofs_align = align,
		.dofs_flags = DOF_SECF_LOAD,
		.dofs_entsize = entry,
		.dofs_offset = (char *)start - (char *)&dof,
		.dofs_size = size,
	};
}

static void
make_dof(void)
{
	static const uint8_t ident[] = { 0x7f, 'D', 'O', 'F', DOF_MODEL_NATIVE, DOF_ENCODE_LSB, DOF_VERSION_2, 2, 8, 8 };

	memcpy(dof.header.dofh_ident, ident, sizeof(ident));
	dof.header.dofh_hdrsize = sizeof(dof.header);
	dof.header.dofh_secsize = sizeof(dof.sections[0]);
	dof.header.dofh_secnum = SECTIONS;
	dof.header.dofh_secoff = (char *)dof.sections - (char *)&dof;
	dof.header.dofh_loadsz = dof.header.dofh_filesz = sizeof(dof);
	for (const struct usdt_site *site = __start_set_usdt; site < __stop_set_usdt && nprobes < MAX_PROBES; site++) {
		const struct usdt_site *earlier = __start_set_usdt;

		while (!same_probe(earlier, site))
			earlier++;
		if (earlier == site)
			add_probe(site);
	}
	for (size_t i = 0; i < nitems(dof.arguments); i++) /* each translated argument is the native one of its number */
		dof.arguments[i] = i;
	dof.provider = (struct dof_provider){
		.dofpr_strtab = SECTION_STRTAB,
		.dofpr_probes = SECTION_PROBES,
		.dofpr_prargs = SECTION_PRARGS,
		.dofpr_proffs = SECTION_PROFFS,
		.dofpr_name = add_string(__start_set_usdt[0].provider),
		.dofpr_provattr = DOF_ATTR(5, 5, 5),
		.dofpr_modattr = DOF_ATTR(1, 1, 0),
		.dofpr_funcattr = DOF_ATTR(1, 1, 0),
		.dofpr_nameattr = DOF_ATTR(5, 5, 5),
		.dofpr_argsattr = DOF_ATTR(5, 5, 5),
		.dofpr_prenoffs = SECTION_PRENOFFS,
	};
	set_section(SECTION_STRTAB, DOF_SECT_STRTAB, 1, 0, dof.strings, nstrings);
	set_section(SECTION_PROBES, DOF_SECT_PROBES, 8, sizeof(dof.probes[0]), dof.probes, nprobes * sizeof(dof.probes[0]));
	set_section(SECTION_PRARGS, DOF_SECT_PRARGS, 1, 1, dof.arguments, sizeof(dof.arguments));
	set_section(SECTION_PROFFS, DOF_SECT_PROFFS, 4, 4, dof.offsets, noffsets * sizeof(dof.offsets[0]));
	set_section(SECTION_PRENOFFS, DOF_SECT_PRENOFFS, 4, 4, dof.enoffsets, nenoffsets * sizeof(dof.enoffsets[0]));
	set_section(SECTION_PROVIDER, DOF_SECT_PROVIDER, 4, 0, &dof.provider, sizeof(dof.provider));
}

static void __attribute__((constructor))
dtrace_dof_init(void)
{
	struct dof_helper helper = { .dofhp_dof = (uintptr_t)&dof, .dofhp_pid = getpid() };
	int fd = open("/dev/dtrace/helper", O_RDWR);

	if (fd < 0)
		return;
	make_dof();
	snprintf(helper.dofhp_mod, sizeof(helper.dofhp_mod), "%s", usdt_module);
	if (ioctl(fd, DTRACEHIOC_ADDDOF, &helper) == 0)
		generation = helper.dofhp_gen;
	close(fd);
}

static void __attribute__((destructor))
dtrace_dof_fini(void)
{
	int fd;

	if (generation < 0 || (fd = open("/dev/dtrace/helper", O_RDWR)) < 0)
		return;
	ioctl(fd, DTRACEHIOC_REMOVE, &generation);
	close(fd);
}
