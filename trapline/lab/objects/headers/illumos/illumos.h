/*
 * What fbt.c and dtrace_subr.c of illumos need of their kernel, and no more: names, types and
 * constants, written for Trapline from the interfaces (facts, no text of illumos').
 *
 * Functions that are only declared here are externs of the glue (trapline/lab/objects/kernels/illumos_fbt.py).
 */
#ifndef TRAPLINE_ILLUMOS_H
#define TRAPLINE_ILLUMOS_H
#include "asm.h"

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

#define __unused __attribute__((unused))
typedef char *caddr_t;
typedef unsigned int uint_t;
typedef unsigned long ulong_t;
typedef long greg_t;
typedef int processorid_t;
typedef uintptr_t dev_t, kmutex_t;

#include "illumos_regs.h"
#ifdef __amd64
#define IS_AT(member, offset) _Static_assert(offsetof(struct regs, member) == (offset), #member)
IS_AT(r_rdi, REGOFF_RDI);
IS_AT(r_rax, REGOFF_RAX);
IS_AT(r_r15, REGOFF_R15);
IS_AT(r_trapno, REGOFF_TRAPNO);
IS_AT(r_rip, REGOFF_RIP);
IS_AT(r_rsp, REGOFF_RSP);
#endif

int strcmp(const char *, const char *);
char *strstr(const char *, const char *);
char *strcpy(char *, const char *);
void panic(const char *, ...) __attribute__((noreturn));
void cmn_err(int, const char *, ...);
#define CE_NOTE 1
#define ASSERT(condition) ((condition) ? (void)0 : panic("assertion failed: %s", #condition))

#define KM_SLEEP 0
void *kmem_alloc(size_t, int);
void *kmem_zalloc(size_t, int);
void kmem_free(void *, size_t);

/* Modules and their symbols. */
#ifdef __amd64
typedef struct {
	uint32_t st_name;
	unsigned char st_info, st_other;
	uint16_t st_shndx;
	uint64_t st_value, st_size;
} Sym;
typedef struct {
	uint32_t sh_name, sh_type;
	uint64_t sh_flags, sh_addr, sh_offset, sh_size;
	uint32_t sh_link, sh_info;
	uint64_t sh_addralign, sh_entsize;
} Shdr;
#else
typedef struct {
	uint32_t st_name, st_value, st_size;
	unsigned char st_info, st_other;
	uint16_t st_shndx;
} Sym;
typedef struct {
	uint32_t sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, sh_link, sh_info, sh_addralign, sh_entsize;
} Shdr;
#endif
#define ELF_ST_TYPE(info) ((info) & 0xf)
#define ELF_ST_BIND(info) ((info) >> 4)
#define STT_FUNC 2
#define STB_WEAK 2

struct module {
	Shdr *symhdr;
	char *strings;
	int nsyms;
	int fbt_nentries;
};
struct modctl {
	struct modctl *mod_next;
	void *mod_mp;
	char *mod_modname;
	void *mod_requisites;
	int mod_loadcnt, mod_nenabled;
	char mod_loaded;
};
struct modctl_list {
	struct modctl_list *modl_next;
	struct modctl *modl_modp;
};
extern struct modctl modules;

struct modinfo;
struct modlinkage {
	int ml_rev;
	void *ml_linkage[7];
};
#define MODREV_1 1
extern struct mod_ops {
	int modm;
} mod_driverops;
struct modldrv {
	struct mod_ops *drv_modops;
	char *drv_linkinfo;
	struct dev_ops *drv_dev_ops;
};
int mod_install(struct modlinkage *);
int mod_info(struct modlinkage *, struct modinfo *);
int mod_remove(struct modlinkage *);

/* Devices. */
typedef struct dev_info dev_info_t;
typedef struct cred cred_t;
typedef enum { DDI_ATTACH, DDI_RESUME } ddi_attach_cmd_t;
typedef enum { DDI_DETACH, DDI_SUSPEND } ddi_detach_cmd_t;
typedef enum { DDI_INFO_DEVT2DEVINFO, DDI_INFO_DEVT2INSTANCE } ddi_info_cmd_t;
#define DDI_SUCCESS 0
#define DDI_FAILURE (-1)
#define DDI_PSEUDO "ddi_pseudo"
#define S_IFCHR 0x2000
#define D_NEW 0
#define D_MP 0x20
#define DEVO_REV 4
struct cb_ops {
	int (*cb_open)(), (*cb_close)(), (*cb_strategy)(), (*cb_print)(), (*cb_dump)(), (*cb_read)(), (*cb_write)();
	int (*cb_ioctl)(), (*cb_devmap)(), (*cb_mmap)(), (*cb_segmap)(), (*cb_chpoll)(), (*cb_prop_op)();
	struct streamtab *cb_str;
	int cb_flag, cb_rev;
};
struct dev_ops {
	int devo_rev, devo_refcnt;
	int (*devo_getinfo)(), (*devo_identify)(), (*devo_probe)();
	int (*devo_attach)(dev_info_t *, ddi_attach_cmd_t), (*devo_detach)(dev_info_t *, ddi_detach_cmd_t);
	int (*devo_reset)();
	struct cb_ops *devo_cb_ops;
	struct bus_ops *devo_bus_ops;
	int (*devo_power)(), (*devo_quiesce)();
};
int nodev(), nulldev(), nochpoll(), ddi_prop_op(), ddi_quiesce_not_needed();
int ddi_create_minor_node(dev_info_t *, const char *, int, int, const char *, int);
void ddi_remove_minor_node(dev_info_t *, const char *);
void ddi_report_dev(dev_info_t *);

/* DTrace. */
typedef uint32_t dtrace_id_t;
typedef uintptr_t dtrace_provider_id_t;
typedef void (*dtrace_xcall_t)(void *);
#define DTRACE_CPUALL -1
#define DTRACE_ARGNONE -1
#define DTRACE_ARGTYPELEN 128
#define DTRACE_PRIV_KERNEL 2
#define DTRACE_STABILITY_PRIVATE 1
#define DTRACE_STABILITY_EVOLVING 5
#define DTRACE_CLASS_UNKNOWN 0
#define DTRACE_CLASS_ISA 4
#define CPU_DTRACE_NOFAULT 0x0001
#define CPU_DTRACE_BADADDR 0x0004
typedef struct {
	uint8_t dtat_name, dtat_data, dtat_class;
} dtrace_attribute_t;
typedef struct {
	dtrace_attribute_t dtpa_provider, dtpa_mod, dtpa_func, dtpa_name, dtpa_args;
} dtrace_pattr_t;
typedef struct {
	dtrace_id_t dtargd_id;
	int dtargd_ndx, dtargd_mapping;
	char dtargd_native[DTRACE_ARGTYPELEN], dtargd_xlate[DTRACE_ARGTYPELEN];
} dtrace_argdesc_t;
typedef struct {
	void (*dtps_provide)(void *, const void *);
	void (*dtps_provide_module)(void *, struct modctl *);
	void (*dtps_enable)(void *, dtrace_id_t, void *), (*dtps_disable)(void *, dtrace_id_t, void *);
	void (*dtps_suspend)(void *, dtrace_id_t, void *), (*dtps_resume)(void *, dtrace_id_t, void *);
	void (*dtps_getargdesc)(void *, dtrace_id_t, void *, dtrace_argdesc_t *);
	uint64_t (*dtps_getargval)(void *, dtrace_id_t, void *, int, int);
	int (*dtps_mode)(void *, dtrace_id_t, void *);
	void (*dtps_destroy)(void *, dtrace_id_t, void *);
} dtrace_pops_t;
int dtrace_register(const char *, const dtrace_pattr_t *, uint32_t, cred_t *, const dtrace_pops_t *, void *,
    dtrace_provider_id_t *);
int dtrace_unregister(dtrace_provider_id_t);
dtrace_id_t dtrace_probe_create(dtrace_provider_id_t, const char *, const char *, const char *, int, void *);
void dtrace_probe(dtrace_id_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
int dtrace_instr_size(uint8_t *);
void dtrace_invop_add(int (*)(uintptr_t, uintptr_t *, uintptr_t));
void dtrace_invop_remove(int (*)(uintptr_t, uintptr_t *, uintptr_t));

/* Types of functions, of which the glue has none. */
typedef struct ctf_file ctf_file_t;
typedef long ctf_id_t;
typedef struct {
	ctf_id_t ctc_return;
	uint_t ctc_argc, ctc_flags;
} ctf_funcinfo_t;
#define CTF_ERR (-1L)
ctf_file_t *ctf_modopen(struct module *, int *);
const char *ctf_parent_name(ctf_file_t *);
int ctf_import(ctf_file_t *, ctf_file_t *);
void ctf_close(ctf_file_t *);
int ctf_func_info(ctf_file_t *, uint_t, ctf_funcinfo_t *);
int ctf_func_args(ctf_file_t *, uint_t, uint_t, ctf_id_t *);
char *ctf_type_name(ctf_file_t *, ctf_id_t, char *, size_t);

/* Processors, threads and processes: there is one of each. */
typedef uintptr_t krwlock_t;
typedef enum { RW_WRITER, RW_READER } krw_t;
void rw_enter(krwlock_t *, krw_t);
void rw_exit(krwlock_t *);
struct cpu {
	int cpu_id;
	int cpu_pri;
	uintptr_t cpu_dtrace_caller;
	krwlock_t cpu_ft_lock;
};
extern struct cpu trapline_cpu;
#define CPU (&trapline_cpu)
typedef struct {
	uint16_t cpuc_dtrace_flags;
	uintptr_t cpuc_dtrace_illval;
} cpu_core_t;
extern cpu_core_t cpu_core[];
#define DTRACE_CPUFLAG_SET(flag) (cpu_core[CPU->cpu_id].cpuc_dtrace_flags |= (flag))
#define DTRACE_CPUFLAG_CLEAR(flag) (cpu_core[CPU->cpu_id].cpuc_dtrace_flags &= ~(flag))

typedef struct proc {
	cred_t *p_cred;
} proc_t;
typedef struct _klwp {
	struct regs *lwp_regs;
} klwp_t;
typedef struct kthread {
	cred_t *t_cred;
	klwp_t *t_lwp;
	uint8_t t_sig_check;
	union {
		struct {
			uint8_t t_dtrace_on, t_dtrace_step, t_dtrace_ret, t_dtrace_ast;
			uint8_t t_dtrace_reg;
		};
		ulong_t t_dtrace_ft;
	};
	uintptr_t t_dtrace_pc, t_dtrace_npc, t_dtrace_scrpc, t_dtrace_astpc, t_dtrace_regv;
} kthread_t;
extern kthread_t trapline_thread;
extern proc_t trapline_proc;
#define curthread (&trapline_thread)
#define curproc (&trapline_proc)
#define ttolwp(thread) ((thread)->t_lwp)
#define lwptoregs(lwp) ((lwp)->lwp_regs)
#define USERMODE(selector) (((selector) & 3) != 0)
#define PS_VM 0x20000
#define SIGILL 4
#define FASTTRAP_INSTR 0xcc
cred_t *crgetcred(void);
void crfree(cred_t *);
void aston(kthread_t *);
void tsignal(kthread_t *, int);
int fuword8(const void *, uint8_t *);
int dtrace_linear_pc(struct regs *, proc_t *, caddr_t *);

typedef uintptr_t xc_arg_t, cpuset_t;
typedef int (*xc_func_t)(xc_arg_t, xc_arg_t, xc_arg_t);
#define CPUSET_ZERO(set) ((set) = 0)
#define CPUSET_ALL(set) ((set) = ~(cpuset_t)0)
#define CPUSET_ADD(set, cpu) ((set) |= (cpuset_t)1 << (cpu))
#define CPUSET2BV(set) (&(set))
void xc_sync(xc_arg_t, xc_arg_t, xc_arg_t, cpuset_t *, xc_func_t);
#define kpreempt_disable() ((void)0)
#define kpreempt_enable() ((void)0)

extern uintptr_t _userlimit, hole_start, hole_end, kernelbase;
#define KERNEL_TEXT 0xfe800000u

#endif
#endif
