/* Offsets for whoever reads the kernel's structures from outside (FreeBSD's genassym, as data). */
#include "sys/assym.h"
#include "sys/linker.h"
#include "sys/malloc.h"
#include "sys/syscall.h"
#include "sys/sysproto.h"
#include "sys/systrace.h"

struct assym {
	char name[28];
	uint32_t value;
};

#define OFFSET(name, type, field) { name, offsetof(struct type, field) }

const struct assym kernel_assym[] = {
	OFFSET("PC_CURTHREAD", pcpu, pc_curthread),
	OFFSET("TD_TID", thread, td_tid),
	OFFSET("TD_PROC", thread, td_proc),
	OFFSET("TD_KSTACK", thread, td_kstack),
	OFFSET("TD_KSTACK_SIZE", thread, td_kstack_size),
	OFFSET("TD_FRAME", thread, td_frame),
	OFFSET("TD_ERRNO", thread, td_errno),
	OFFSET("TD_SDT_ARG5", thread, td_sdt_arg5),
	OFFSET("P_PID", proc, p_pid),
	OFFSET("P_PPTR", proc, p_pptr),
	OFFSET("P_COMM", proc, p_comm),
	OFFSET("P_UID", proc, p_uid),
	OFFSET("P_GID", proc, p_gid),
	OFFSET("P_ARGS", proc, p_args),
	OFFSET("P_ARGS_SIZE", proc, p_args_size),
	OFFSET("P_PMAP", proc, p_pmap),
	OFFSET("PMAP_ROOT", pmap, pm_root),
	{ "TF_SIZE", sizeof(struct trapframe) },
	OFFSET("TD_SYSTRACE_ARGS", thread, td_systrace_args),
	OFFSET("SY_ENTRY", sysent, sy_entry),
	OFFSET("SY_RETURN", sysent, sy_return),
	{ "SY_SIZE", sizeof(struct sysent) },
	{ "SYS_MAXSYSCALL", SYS_MAXSYSCALL },
	{ "SYSTRACE_NARGS", nitems(((struct syscall_args *)NULL)->args) },
	{ "SYSTRACE_ARGDESC_SIZE", sizeof(struct systrace_argdesc) },
	OFFSET("LF_FILENAME", linker_file, filename),
	OFFSET("LF_ADDRESS", linker_file, address),
	OFFSET("LF_SIZE", linker_file, size),
	OFFSET("LF_ID", linker_file, id),
	OFFSET("LF_REFS", linker_file, refs),
	OFFSET("LF_LOADCNT", linker_file, loadcnt),
	OFFSET("LF_SYMTAB", linker_file, symtab),
	OFFSET("LF_NSYMS", linker_file, nsyms),
	OFFSET("LF_STRTAB", linker_file, strtab),
	OFFSET("LF_NDEPS", linker_file, ndeps),
	OFFSET("LF_DEPS", linker_file, deps),
	OFFSET("LF_NEXT", linker_file, link.tqe_next),
	OFFSET("KS_NEXT", malloc_type, ks_next),
	OFFSET("KS_SHORTDESC", malloc_type, ks_shortdesc),
	OFFSET("KS_PROBES", malloc_type, ks_mti.mti_probes),
	{ "", 0 },
};
