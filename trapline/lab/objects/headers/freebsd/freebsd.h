/*
 * What fbt_isa.c and dtrace_subr.c of FreeBSD need of their kernel, and no more: names, types and
 * constants, written for Trapline from the interfaces (facts, no text of FreeBSD's).
 *
 * Functions that are only declared here are externs of the glue (trapline/lab/objects/kernels/fbt.py).
 */
#ifndef TRAPLINE_FREEBSD_H
#define TRAPLINE_FREEBSD_H

#if defined(__x86_64__) || defined(__i386__)
#include "x86.h"
#endif
#define CPU_DTRACE_NOFAULT 0x0001
#define CPU_DTRACE_BADADDR 0x0004

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__amd64__)
#define __amd64__ 1
#endif
#define __unused __attribute__((unused))
#define nitems(array) (sizeof(array) / sizeof((array)[0]))

typedef char *caddr_t;
typedef unsigned int u_int;
typedef unsigned char u_char;
typedef unsigned long u_long;
typedef intptr_t register_t;
typedef uintptr_t vm_offset_t;
typedef int processorid_t;

struct timespec {
	int64_t tv_sec;
	long tv_nsec;
};

int strcmp(const char *, const char *);
int strncmp(const char *, const char *, size_t);
void *memset(void *, int, size_t);
void *memcpy(void *, const void *, size_t);
void panic(const char *, ...) __attribute__((noreturn));
int printf(const char *, ...);

#define ASSERT(condition) ((condition) ? (void)0 : panic("assertion failed: %s", #condition))
#define KASSERT(condition, message) ((condition) ? (void)0 : panic message)

/* malloc(9) */
struct malloc_type {
	const char *name;
};
#define MALLOC_DECLARE(type) extern struct malloc_type type[1]
#define M_WAITOK 2
#define M_ZERO 0x100
#define KM_SLEEP 2
void *malloc(size_t, struct malloc_type *, int);
void free(void *, struct malloc_type *);
void *kmem_alloc(size_t, int);
void kmem_free(void *, size_t);
MALLOC_DECLARE(M_FBT);

/* The linker's files and symbols. */
struct linker_file {
	const char *filename;
	int loadcnt;
	int nenabled;
	int fbt_nentries;
};
typedef struct linker_file *linker_file_t;
typedef struct linker_file modctl_t;
typedef struct linker_symval {
	const char *name;
	caddr_t value;
	size_t size;
} linker_symval_t;

/* Trap frames: the fields that the code uses, in the machine's order. */
struct trapframe {
#if defined(__x86_64__)
	register_t tf_rdi, tf_rsi, tf_rdx, tf_rcx, tf_r8, tf_r9, tf_rax, tf_rbx, tf_rbp;
	register_t tf_r10, tf_r11, tf_r12, tf_r13, tf_r14, tf_r15;
	uint32_t tf_trapno;
	uint16_t tf_fs, tf_gs;
	register_t tf_addr;
	uint32_t tf_flags;
	uint16_t tf_es, tf_ds;
	register_t tf_err, tf_rip, tf_cs, tf_rflags, tf_rsp, tf_ss;
#elif defined(__i386__)
	int tf_fs, tf_es, tf_ds, tf_edi, tf_esi, tf_ebp, tf_isp, tf_ebx, tf_edx, tf_ecx, tf_eax;
	int tf_trapno, tf_err, tf_eip, tf_cs, tf_eflags, tf_esp, tf_ss;
#elif defined(__aarch64__)
	uint64_t tf_sp, tf_lr, tf_elr, tf_spsr, tf_esr, tf_far;
	uint64_t tf_x[30];
#elif defined(__riscv)
	uint64_t tf_ra, tf_sp, tf_gp, tf_tp, tf_t[7], tf_s[12], tf_a[8];
	uint64_t tf_sepc, tf_sstatus, tf_stval, tf_scause;
#endif
};
#if defined(__x86_64__)
#define IS_AT(member, offset) _Static_assert(offsetof(struct trapframe, member) == (offset), #member)
IS_AT(tf_rdi, TF_RDI);
IS_AT(tf_rsi, TF_RSI);
IS_AT(tf_rdx, TF_RDX);
IS_AT(tf_rcx, TF_RCX);
IS_AT(tf_r8, TF_R8);
IS_AT(tf_r9, TF_R9);
IS_AT(tf_rax, TF_RAX);
IS_AT(tf_rbx, TF_RBX);
IS_AT(tf_rbp, TF_RBP);
IS_AT(tf_r10, TF_R10);
IS_AT(tf_r11, TF_R11);
IS_AT(tf_r12, TF_R12);
IS_AT(tf_r13, TF_R13);
IS_AT(tf_r14, TF_R14);
IS_AT(tf_r15, TF_R15);
IS_AT(tf_rip, TF_RIP);
IS_AT(tf_cs, TF_CS);
IS_AT(tf_rflags, TF_RFLAGS);
IS_AT(tf_rsp, TF_RSP);
IS_AT(tf_ss, TF_SS);
#endif

/* Processors and threads: there is one of each. */
#define curcpu 0
struct thread {
	struct trapframe *t_dtrace_trapframe;
};
extern struct thread trapline_thread;
#define curthread (&trapline_thread)
typedef struct {
	uint64_t bits[4];
} cpuset_t;
extern cpuset_t all_cpus;
#define CPU_SETOF(cpu, set) ((set)->bits[0] = 1ull << (cpu))
void smp_rendezvous_cpus(cpuset_t, void (*)(void *), void (*)(void *), void (*)(void *), void *);
void smp_no_rendezvous_barrier(void *);
#if defined(__x86_64__) || defined(__i386__)
#include "subr.h"
#endif

register_t intr_disable(void);
void intr_restore(register_t);
bool disable_wp(void);
void restore_wp(bool);
bool arm64_get_writable_addr(vm_offset_t, vm_offset_t *);
void cpu_icache_sync_range(vm_offset_t, size_t);
#if defined(__riscv)
static inline void
fence_i(void)
{
	__asm__ volatile("fence.i" ::: "memory");
}
#endif
#if defined(__aarch64__)
#define READ_SPECIALREG(name) \
	({ uint64_t value_; __asm__ volatile("mrs %0, " #name : "=r"(value_)); value_; })
#endif
#define EXCP_DATA_ABORT 0x25
#define VM_MIN_KERNEL_ADDRESS 0xffff000000000000ul
#define SCAUSE_INST_ACCESS_FAULT 1
#define SCAUSE_LOAD_ACCESS_FAULT 5
#define SCAUSE_STORE_ACCESS_FAULT 7
#define SCAUSE_INST_PAGE_FAULT 12
#define SCAUSE_LOAD_PAGE_FAULT 13
#define SCAUSE_STORE_PAGE_FAULT 15

/* DTrace. */
typedef uint32_t dtrace_id_t, dtrace_epid_t;
typedef uintptr_t dtrace_provider_id_t;
typedef struct dtrace_state dtrace_state_t;
typedef void (*dtrace_xcall_t)(void *);
#define DTRACE_CPUALL -1
typedef struct {
	uintptr_t cpu_dtrace_caller;
} solaris_cpu_t;
typedef struct {
	uint16_t cpuc_dtrace_flags;
	uintptr_t cpuc_dtrace_illval;
} cpu_core_t;
extern solaris_cpu_t solaris_cpu[];
extern cpu_core_t cpu_core[];
#define DTRACE_CPUFLAG_SET(flag) (cpu_core[curcpu].cpuc_dtrace_flags |= (flag))
#define DTRACE_CPUFLAG_CLEAR(flag) (cpu_core[curcpu].cpuc_dtrace_flags &= ~(flag))

dtrace_id_t dtrace_probe_create(dtrace_provider_id_t, const char *, const char *, const char *, int, void *);
void dtrace_probe(dtrace_id_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
int dtrace_instr_size(uint8_t *);

#if defined(__aarch64__)
#define DTRACE_INVOP_STP 1
#define DTRACE_INVOP_RET 2
#define DTRACE_INVOP_B 3
#define DTRACE_INVOP_SUB 4
#define DTRACE_PATCHVAL (0xd4200000 | 0x40d << 5)
#define INSN_SIZE 4
#define BTI_MASK 0xffffff3f
#define BTI_INSTR 0xd503241f
#define NOP_INSTR 0xd503201f
#define RET_INSTR 0xd65f03c0
#define SUB_MASK 0xffc00000
#define SUB_INSTR 0xd1000000
#define SUB_RD_SHIFT 0
#define SUB_RN_SHIFT 5
#define SUB_R_MASK 0x1f
#define SUB_IMM_SHIFT 10
#define SUB_IMM_MASK 0xfff
#define LDP_STP_MASK 0xffc00000
#define STP_32 0x29800000
#define STP_64 0xa9800000
#define LDP_32 0x28c00000
#define LDP_64 0xa8c00000
#define ARG1_SHIFT 0
#define ARG1_MASK 0x1f
#define ARG2_SHIFT 10
#define ARG2_MASK 0x1f
#define ADDR_SHIFT 5
#define ADDR_MASK 0x1f
#define OFFSET_SHIFT 15
#define OFFSET_SIZE 7
#define OFFSET_MASK 0x7f
#define B_MASK 0xff000000
#define B_DATA_MASK 0x00ffffff
#define B_INSTR 0x14000000
#elif defined(__riscv)
#define DTRACE_INVOP_SD 1
#define DTRACE_INVOP_C_SDSP 2
#define DTRACE_INVOP_RET 3
#define DTRACE_INVOP_C_RET 4
#define DTRACE_INVOP_NOP 5
#define INSN_SIZE 4
#define INSN_C_SIZE 2
#define X_RA 1
#define X_SP 2
#define RD_SHIFT 7
#define RS1_SHIFT 15
#define RS2_SHIFT 20
#define RD_MASK (0x1f << RD_SHIFT)
#define RS1_MASK (0x1f << RS1_SHIFT)
#define RS2_MASK (0x1f << RS2_SHIFT)
#define IMM_MASK (0xfffu << 20)
#define RS1_SP (X_SP << RS1_SHIFT)
#define RS2_RA (X_RA << RS2_SHIFT)
#define RS2_C_SHIFT 2
#define RS2_C_MASK (0x1f << RS2_C_SHIFT)
#define RS2_C_RA (X_RA << RS2_C_SHIFT)
#define MATCH_SD 0x3023
#define MASK_SD 0x707f
#define MATCH_JALR 0x67
#define MASK_JALR 0x707f
#define MATCH_C_JR 0x8002
#define MASK_C_JR 0xf07f
#define MATCH_C_SDSP 0xe002
#define MASK_C_SDSP 0xe003
#define MATCH_C_NOP 0x1
#define MASK_C_NOP 0xffff
#define MATCH_EBREAK 0x100073
#define MATCH_C_EBREAK 0x9002
#endif

#endif
#endif
