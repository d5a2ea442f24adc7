/* Offsets for readers of the kernel's structures from outside (FreeBSD's genassym, as data). */
#include "sys/assym.h"
#include "sys/callout.h"
#include "sys/file.h"
#include "sys/memfs.h"
#include "sys/vm.h"
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
	OFFSET("TD_RUNTIME", thread, td_runtime),
	OFFSET("TD_SWITCHED_IN", thread, td_switched_in),
	OFFSET("TD_INTR_NESTING_LEVEL", thread, td_intr_nesting_level),
	OFFSET("TD_SDT_ARG5", thread, td_sdt_arg5),
	OFFSET("C_TIME", callout, c_time),
	OFFSET("P_PID", proc, p_pid),
	OFFSET("P_PPTR", proc, p_pptr),
	OFFSET("P_COMM", proc, p_comm),
	OFFSET("P_UID", proc, p_cred.cr_uid),
	OFFSET("P_GID", proc, p_cred.cr_gid),
	OFFSET("P_ARGS", proc, p_pargs.ar_args),
	OFFSET("P_ARGS_SIZE", proc, p_pargs.ar_length),
	OFFSET("P_FD", proc, p_fd),
	OFFSET("P_PMAP", proc, p_pmap),
	OFFSET("PMAP_ROOT", pmap, pm_root),
	OFFSET("P_VMSPACE", proc, p_vmspace),
	OFFSET("P_TEXTVP", proc, p_textvp),
	OFFSET("P_STATE", proc, p_state),
	OFFSET("P_LIST", proc, p_list),
	OFFSET("P_THREADS", proc, p_threads),
	OFFSET("VM_ENTRIES", vmspace, vm_entries),
	OFFSET("VM_PMAP", vmspace, vm_pmap),
	OFFSET("ME_LINKS", vm_map_entry, links),
	OFFSET("ME_START", vm_map_entry, start),
	OFFSET("ME_END", vm_map_entry, end),
	OFFSET("ME_PROTECTION", vm_map_entry, protection),
	OFFSET("ME_VNODE", vm_map_entry, vnode),
	OFFSET("ME_OFFSET", vm_map_entry, offset),
	OFFSET("ME_FILESZ", vm_map_entry, filesz),
	OFFSET("V_DATA", vnode, v_data),
	OFFSET("V_CACHE_DST", vnode, v_cache_dst),
	OFFSET("NC_DVP", namecache, nc_dvp),
	OFFSET("NC_NLEN", namecache, nc_nlen),
	OFFSET("NC_NAME", namecache, nc_name),
	OFFSET("MN_ID", memfs_node, mn_id),
	OFFSET("MN_SIZE", memfs_node, mn_size),
	OFFSET("MN_MTIME", memfs_node, mn_mtime),
	OFFSET("MN_PAGES", memfs_node, mn_pages),
	OFFSET("MN_NPAGES", memfs_node, mn_npages),
	OFFSET("LO_FLAGS", lock_object, lo_flags),
	OFFSET("MTX_LOCK", mtx, mtx_lock),
	OFFSET("SX_OWNER", sx, sx_owner),
	OFFSET("SX_SHARED", sx, sx_shared),
	OFFSET("FD_OFILES", filedesc, fd_ofiles),
	OFFSET("FDE_FILE", filedescent, fde_file),
	{ "FDE_SIZE", sizeof(struct filedescent) },
	{ "NOFILE", NOFILE },
	{ "TF_SIZE", sizeof(struct trapframe) },
	{ "USRSTACK", USRSTACK },
	{ "MAXSSIZ", MAXSSIZ },
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
