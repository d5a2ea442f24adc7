/* illumos' registers, processes, locks and segments, as fasttrap_isa.c uses them. */
#ifndef TRAPLINE_FASTTRAP_ILLUMOS_H
#define TRAPLINE_FASTTRAP_ILLUMOS_H

#include "illumos_regs.h"
#define rdmsr(number) 0ul

/* Segments, whose macros hide their layout. */
typedef struct user_desc {
	uintptr_t usd_base, usd_limit;
	unsigned int usd_type, usd_dpl, usd_p, usd_gran, usd_def32;
} user_desc_t;
#define USEGD_GETBASE(descriptor) ((descriptor)->usd_base)
#define USEGD_GETLIMIT(descriptor) ((descriptor)->usd_limit)
#define SEL_UPL 3
#define SELISUPL(selector) (((selector) & 3) == SEL_UPL)
#define SELISLDT(selector) ((selector) & 4)
#define SELTOIDX(selector) ((selector) >> 3)
#define NGDT 8
extern user_desc_t trapline_gdt[NGDT];
#define cpu_get_gdt() trapline_gdt

/* Processes, threads and CPUs: there is one of each. */
typedef uint32_t caddr32_t;
typedef struct proc {
	int p_model;
	pid_t p_pid;
	unsigned int p_flag;
	struct proc *p_parent;
	kmutex_t p_lock;
	user_desc_t *p_ldt;
	uint16_t p_ldtlimit;
} proc_t;
typedef struct thread {
	uintptr_t t_dtrace_pc, t_dtrace_npc, t_dtrace_scrpc, t_dtrace_astpc, t_dtrace_regv;
	uint8_t t_dtrace_ft, t_dtrace_on, t_dtrace_step, t_dtrace_ret, t_dtrace_reg;
} kthread_t;
typedef struct {
	struct pcb {
#if defined(__x86_64__)
		uintptr_t pcb_fsbase, pcb_gsbase;
#else
		user_desc_t pcb_gsdesc;
#endif
	} lwp_pcb;
	struct regs *lwp_regs;
} klwp_t;
struct cpu {
	int cpu_id;
};
extern struct proc trapline_proc;
extern struct thread trapline_thread;
extern klwp_t trapline_lwp;
extern struct cpu trapline_cpu;
#define curproc (&trapline_proc)
#define curthread (&trapline_thread)
#define ttolwp(thread) (&trapline_lwp)
#define CPU (&trapline_cpu)
#define SVFORK 0x00800000
#define mutex_enter(lock) ((void)(lock))
#define mutex_exit(lock) ((void)(lock))

/* Signals. */
#define SIGSEGV 11
#define SEGV_MAPERR 1
#define KM_SLEEP 0
typedef struct {
	struct {
		int si_signo, si_code;
		caddr_t si_addr;
	} sq_info;
} sigqueue_t;
void *kmem_zalloc(size_t, int);
void sigaddqa(struct proc *, struct thread *, sigqueue_t *);
#define aston(thread) ((void)(thread))

/* The program's memory. */
int fasttrap_fulword(const void *, uintptr_t *);
int fasttrap_fuword32(const void *, uint32_t *);

#endif
