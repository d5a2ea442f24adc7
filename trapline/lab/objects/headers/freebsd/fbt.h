/* FBT's records, and what its parts offer each other. */
#ifndef TRAPLINE_FBT_H
#define TRAPLINE_FBT_H
#include "fbt_isa.h"

#define FBT_ENTRY "entry"
#define FBT_RETURN "return"

typedef struct fbt_probe {
	struct fbt_probe *fbtp_hashnext, *fbtp_tracenext, *fbtp_probenext;
	int fbtp_enabled;
	fbt_patchval_t *fbtp_patchpoint;
	int8_t fbtp_rval;
	fbt_patchval_t fbtp_patchval, fbtp_savedval;
	uintptr_t fbtp_roffset;
	dtrace_id_t fbtp_id;
	const char *fbtp_name;
	modctl_t *fbtp_ctl;
	int fbtp_loadcnt, fbtp_symindx;
} fbt_probe_t;

int fbt_invop(uintptr_t, struct trapframe *, uintptr_t);
void fbt_patch_tracepoint(fbt_probe_t *, fbt_patchval_t);
int fbt_provide_module_function(struct linker_file *, int, struct linker_symval *, void *);
int fbt_excluded(const char *);

extern dtrace_provider_id_t fbt_id;
extern fbt_probe_t **fbt_probetab;
extern int fbt_probetab_mask;
#define FBT_ADDR2NDX(address) ((uintptr_t)(address) >> 4 & fbt_probetab_mask)

#endif
