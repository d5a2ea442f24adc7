/*
 * What fasttrap_isa.c of FreeBSD and illumos (x86) needs of its kernel, and no more: names, types and
 * constants, written for Trapline from the interfaces (facts, no text of theirs).
 *
 * Functions that are only declared here are externs of the glue (trapline/lab/objects/kernels/fasttrap.py).
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
typedef intptr_t greg_t;
typedef int pid_t;
typedef uint32_t dtrace_id_t;
typedef unsigned long dtrace_icookie_t;
typedef int kmutex_t;

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PAGESIZE 4096
#define PAGEOFFSET (PAGESIZE - 1)
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
#define bcopy(from, to, size) memcpy(to, from, size)
#define bzero(memory, size) memset(memory, 0, size)
void panic(const char *, ...) __attribute__((noreturn));
#define ASSERT(condition) ((condition) ? (void)0 : panic("assertion failed: %s", #condition))

/* Processes: there is one. */
#define DATAMODEL_ILP32 1
#define DATAMODEL_LP64 2
#if defined(__x86_64__)
#define DATAMODEL_NATIVE DATAMODEL_LP64
#else
#define DATAMODEL_NATIVE DATAMODEL_ILP32
#endif

#ifdef TRAPLINE_ILLUMOS
#include "illumos.h"
#else
#include "freebsd.h"
#endif

/* DTrace. */
typedef struct {
	uint16_t cpuc_dtrace_flags;
	uintptr_t cpuc_dtrace_illval;
	kmutex_t cpuc_pid_lock;
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
void fasttrap_sigtrap(struct proc *, struct thread *, uintptr_t);
int fasttrap_copyout(const void *, void *, size_t);
int fasttrap_sulword(void *, uintptr_t);
int fasttrap_suword32(void *, uint32_t);
int uread(struct proc *, void *, size_t, uintptr_t);
int uwrite(struct proc *, void *, size_t, uintptr_t);

#endif
