/*
 * What fasttrap_isa.c of FreeBSD (x86) needs of its kernel, and no more: names, types and constants,
 * written for Trapline from the interfaces (facts, no text of FreeBSD's).
 *
 * Functions that are only declared here are externs of the glue (trapline/lab/objects/fasttrap.py).
 */
#ifndef TRAPLINE_FASTTRAP_H
#define TRAPLINE_FASTTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define __amd64 1
#define __amd64__ 1
#else
#define __i386 1
#endif

typedef char *caddr_t;
typedef unsigned int uint_t;
typedef unsigned long ulong_t;
typedef long greg_t;
typedef int pid_t;
typedef uint32_t dtrace_id_t;
typedef unsigned long dtrace_icookie_t;

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PAGESIZE 4096
#define PAGEOFFSET (PAGESIZE - 1)
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#define bcopy(from, to, size) memcpy(to, from, size)
#define bzero(memory, size) memset(memory, 0, size)
void panic(const char *, ...) __attribute__((noreturn));
#define ASSERT(condition) ((condition) ? (void)0 : panic("assertion failed: %s", #condition))

/* The registers of a program, in the order of FreeBSD's <machine/reg.h>, and their numbers in it. */
#if defined(__x86_64__)
struct reg {
	int64_t r_r15, r_r14, r_r13, r_r12, r_r11, r_r10, r_r9, r_r8, r_rdi, r_rsi, r_rbp, r_rbx, r_rdx, r_rcx, r_rax;
	uint32_t r_trapno;
	uint16_t r_fs, r_gs;
	uint32_t r_err;
	uint16_t r_es, r_ds;
	int64_t r_rip, r_cs, r_rflags, r_rsp, r_ss;
};
enum {
	REG_R15, REG_R14, REG_R13, REG_R12, REG_R11, REG_R10, REG_R9, REG_R8, REG_RDI, REG_RSI, REG_RBP, REG_RBX,
	REG_RDX, REG_RCX, REG_RAX, REG_TRAPNO, REG_FS, REG_GS, REG_ERR, REG_ES, REG_DS, REG_RIP, REG_CS, REG_RFL,
	REG_RSP, REG_SS, REG_FSBASE, REG_GSBASE
};
#define tf_rip tf_registers.r_rip
#else
struct reg {
	uint32_t r_fs, r_es, r_ds, r_edi, r_esi, r_ebp, r_isp, r_ebx, r_edx, r_ecx, r_eax, r_trapno, r_err, r_eip, r_cs;
	uint32_t r_eflags, r_esp, r_ss, r_gs;
};
enum { FS, ES, DS, EDI, ESI, EBP, ESP, EBX, EDX, ECX, EAX, TRAPNO, ERR, EIP, CS, EFL, UESP, SS, GS };
#define tf_eip tf_registers.r_eip
#endif
struct trapframe {
	struct reg tf_registers;
};
#define rdmsr(number) 0ul

/* Processes and threads: there is one of each. */
struct ldt {
	uint16_t ldt_len;
	void *ldt_base;
};
struct proc {
	int p_model;
	pid_t p_pid;
	unsigned int p_flag;
	void *p_vmspace;
	struct proc *p_pptr;
	uint64_t p_fasttrap_tp_gen;
	struct {
		struct ldt *md_ldt;
	} p_md;
};
typedef struct proc proc_t;
typedef struct thread {
	struct trapframe *td_frame;
	uintptr_t t_dtrace_pc, t_dtrace_npc, t_dtrace_scrpc, t_dtrace_astpc, t_dtrace_regv;
	uint64_t t_fasttrap_tp_gen;
	uint8_t t_dtrace_ft, t_dtrace_on, t_dtrace_step, t_dtrace_ret, t_dtrace_reg;
} kthread_t;
extern struct proc trapline_proc;
extern struct thread trapline_thread;
#define curproc (&trapline_proc)
#define curthread (&trapline_thread)
#define P_WEXIT 0x2000
#define DATAMODEL_ILP32 1
#define DATAMODEL_LP64 2
#if defined(__x86_64__)
#define DATAMODEL_NATIVE DATAMODEL_LP64
#else
#define DATAMODEL_NATIVE DATAMODEL_ILP32
#endif

static inline int
fill_frame_regs(struct trapframe *frame, struct reg *registers)
{
	*registers = frame->tf_registers;
	return 0;
}
static inline int
proc_write_regs(struct thread *thread, struct reg *registers)
{
	thread->td_frame->tf_registers = *registers;
	return 0;
}
#define fill_regs(thread, registers) fill_frame_regs((thread)->td_frame, registers)
#define set_regs(thread, registers) proc_write_regs(thread, registers)

/* Locks: nothing else runs. */
struct rm_priotracker {
	int unused;
};
#define rm_rlock(lock, tracker) ((void)(tracker))
#define rm_runlock(lock, tracker) ((void)(tracker))
#define sx_slock(lock) ((void)0)
#define sx_sunlock(lock) ((void)0)
#define PROC_LOCK(process) ((void)0)
#define PROC_UNLOCK(process) ((void)0)
#define PHOLD(process) ((void)0)
#define _PHOLD_LITE(process) ((void)0)
#define PRELE(process) ((void)0)
#define atomic_load_acq_64(place) (*(place))

/* Signals. */
#define SIGSEGV 11
#define SEGV_MAPERR 1
typedef struct {
	int ksi_signo, ksi_code;
	caddr_t ksi_addr;
} ksiginfo_t;
#define ksiginfo_init(information) memset(information, 0, sizeof(ksiginfo_t))
int tdksignal(struct thread *, int, ksiginfo_t *);

/* Segments: none but the flat ones. */
#define SEL_UPL 3
#define ISPL(selector) ((selector) & 3)
#define ISLDT(selector) ((selector) & 4)
#define IDXSEL(selector) ((selector) >> 3 & 0x1fff)
#define NGDT 16
struct user_segment_descriptor {
	unsigned sd_lolimit : 16, sd_lobase : 24, sd_type : 5, sd_dpl : 2, sd_p : 1, sd_hilimit : 4, sd_xx : 1;
	unsigned sd_long : 1, sd_def32 : 1, sd_gran : 1, sd_hibase : 8;
} __attribute__((packed));
#define segment_descriptor user_segment_descriptor
union descriptor {
	struct user_segment_descriptor sd;
};
#define USD_GETBASE(descriptor) ((descriptor)->sd_lobase | (uintptr_t)(descriptor)->sd_hibase << 24)
#define USD_GETLIMIT(descriptor) ((descriptor)->sd_lolimit | (uintptr_t)(descriptor)->sd_hilimit << 16)
#if defined(__x86_64__)
extern struct user_segment_descriptor *trapline_gdt[NGDT];
#define PCPU_PTR(name) trapline_##name
#else
extern union descriptor gdt[NGDT];
#endif
extern int max_ldt_segment;

/* DTrace. */
typedef struct {
	uint16_t cpuc_dtrace_flags;
	uintptr_t cpuc_dtrace_illval;
} cpu_core_t;
extern cpu_core_t cpu_core[];
#define CPU_DTRACE_NOFAULT 0x0001
#define CPU_DTRACE_BADADDR 0x0004
#define CPU_DTRACE_ENTRY 0x0800
#define DTRACE_CPUFLAG_SET(flag) (cpu_core[0].cpuc_dtrace_flags |= (flag))
#define DTRACE_CPUFLAG_CLEAR(flag) (cpu_core[0].cpuc_dtrace_flags &= ~(flag))
#define dtrace_interrupt_disable() 0ul
#define dtrace_interrupt_enable(cookie) ((void)(cookie))
void dtrace_probe(dtrace_id_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
int dtrace_instr_size_isa(uint8_t *, int, int *);
uintptr_t dtrace_fulword(void *);
uint32_t dtrace_fuword32(void *);

/* Fasttrap. */
#define FASTTRAP_MAX_INSTR_SIZE 15
typedef uint8_t fasttrap_instr_t;
#define FASTTRAP_INSTR 0xcc
#define T_DTRACE_RET 32
enum { FASTTRAP_SEG_NONE, FASTTRAP_SEG_CS, FASTTRAP_SEG_DS, FASTTRAP_SEG_ES, FASTTRAP_SEG_FS, FASTTRAP_SEG_GS,
	FASTTRAP_SEG_SS };
enum { FASTTRAP_T_COMMON, FASTTRAP_T_JCC, FASTTRAP_T_LOOP, FASTTRAP_T_JCXZ, FASTTRAP_T_JMP, FASTTRAP_T_CALL,
	FASTTRAP_T_RET, FASTTRAP_T_RET16, FASTTRAP_T_PUSHL_EBP = 0x10, FASTTRAP_T_NOP };
#define FASTTRAP_RIP_1 1
#define FASTTRAP_RIP_2 2
#define FASTTRAP_RIP_X 4
typedef enum { DTFTP_NONE, DTFTP_ENTRY, DTFTP_RETURN, DTFTP_OFFSETS, DTFTP_POST_OFFSETS, DTFTP_IS_ENABLED }
	fasttrap_probe_type_t;
typedef struct fasttrap_proc {
	uint64_t ftpc_acount;
} fasttrap_proc_t;
typedef struct fasttrap_probe {
	dtrace_id_t ftp_id;
	uintptr_t ftp_faddr;
	size_t ftp_fsize;
	int ftp_nargs;
	uint8_t *ftp_argmap;
} fasttrap_probe_t;
typedef struct fasttrap_id {
	struct fasttrap_id *fti_next;
	fasttrap_probe_t *fti_probe;
	fasttrap_probe_type_t fti_ptype;
} fasttrap_id_t;
typedef struct fasttrap_tracepoint {
	struct fasttrap_tracepoint *ftt_next;
	fasttrap_proc_t *ftt_proc;
	uintptr_t ftt_pc, ftt_dest;
	pid_t ftt_pid;
	fasttrap_id_t *ftt_ids, *ftt_retids;
	uint8_t ftt_instr[FASTTRAP_MAX_INSTR_SIZE], ftt_type, ftt_code, ftt_base, ftt_index, ftt_scale, ftt_segment;
	uint8_t ftt_size, ftt_ripmode, ftt_modrm;
} fasttrap_tracepoint_t;
typedef struct {
	void *ftb_data;
} fasttrap_bucket_t;
typedef struct {
	fasttrap_bucket_t *fth_table;
} fasttrap_hash_t;
extern fasttrap_hash_t fasttrap_tpoints;
#define FASTTRAP_TPOINTS_INDEX(pid, pc) 0
typedef struct fasttrap_scrspace {
	uintptr_t ftss_addr;
} fasttrap_scrspace_t;
fasttrap_scrspace_t *fasttrap_scraddr(struct thread *, fasttrap_proc_t *);
void fasttrap_sigtrap(struct proc *, struct thread *, uintptr_t);
int fasttrap_copyout(const void *, void *, size_t);
uintptr_t fasttrap_fulword(const void *);
uint32_t fasttrap_fuword32(const void *);
int fasttrap_sulword(void *, uintptr_t);
int fasttrap_suword32(void *, uint32_t);
int uread(struct proc *, void *, size_t, uintptr_t);
int uwrite(struct proc *, void *, size_t, uintptr_t);

#endif
