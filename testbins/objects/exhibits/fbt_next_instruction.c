/*
 * The exhibit fbt-next-instruction, in C as a port of FBT to AArch64 has it: the scan finds the
 * instruction that opens the frame, and a return.  BUGGY: the flag that ends the first loop is
 * tested one step too late, when the loop has advanced.
 */
#include <stdint.h>

struct linker_file {
	int loadcnt;
};
typedef struct {
	const char *name;
	uint32_t *value;
	unsigned long size;
} linker_symval_t;
typedef struct fbt_probe {
	struct fbt_probe *fbtp_hashnext, *fbtp_probenext;
	uint32_t *fbtp_patchpoint;
	int8_t fbtp_rval;
	uint32_t fbtp_patchval, fbtp_savedval;
	uintptr_t fbtp_roffset;
	uint32_t fbtp_id;
} fbt_probe_t;

void *malloc(unsigned long, void *, int);
uint32_t dtrace_probe_create(uintptr_t, const char *, const char *, const char *, int, void *);

static fbt_probe_t *
record(uint32_t *at, int rval, uintptr_t roffset)
{
	fbt_probe_t *probe = malloc(sizeof(*probe), 0, 0x100);

	probe->fbtp_patchpoint = at;
	probe->fbtp_savedval = *at;
	probe->fbtp_patchval = 0xd42081a0;
	probe->fbtp_rval = rval;
	probe->fbtp_roffset = roffset;
	return probe;
}

int
fbt_provide_module_function(struct linker_file *file, int index, linker_symval_t *symbol, void *argument)
{
	uint32_t *at = symbol->value, *limit = at + symbol->size / 4;

	(void)file, (void)index, (void)argument;
#ifdef BUGGY
	for (_Bool found = 0; at < limit && !found; at++)
		found = (*at & 0xffc003e0) == 0xa98003e0;
#else
	for (; at < limit && (*at & 0xffc003e0) != 0xa98003e0; at++)
		continue;
#endif
	if (at >= limit)
		return 0;
	dtrace_probe_create(0, "kernel", symbol->name, "entry", 0, record(at, 1, 0));
	for (uint32_t *start = symbol->value; at < limit; at++)
		if (*at == 0xd65f03c0)
			dtrace_probe_create(0, "kernel", symbol->name, "return", 0, record(at, 2, (at - start) * 4));
	return 0;
}
