/* illumos' registers, processes, locks and segments, as fasttrap_isa.c uses them. */
#ifndef TRAPLINE_FASTTRAP_ILLUMOS_H
#define TRAPLINE_FASTTRAP_ILLUMOS_H

/* The registers of a program in the order of struct regs, and the numbers of <sys/regset.h>. */
struct regs {
	greg_t r_savfp, r_savpc;
#if defined(__x86_64__)
	greg_t r_rdi, r_rsi, r_rdx, r_rcx, r_r8, r_r9, r_rax, r_rbx, r_rbp, r_r10, r_r11, r_r12, r_r13, r_r14, r_r15;
	greg_t r_fsbase, r_gsbase, r_ds, r_es, r_fs, r_gs, r_trapno, r_err, r_rip, r_cs, r_rfl, r_rsp, r_ss;
};
enum {
	REG_R15, REG_R14, REG_R13, REG_R12, REG_R11, REG_R10, REG_R9, REG_R8, REG_RDI, REG_RSI, REG_RBP, REG_RBX,
	REG_RDX, REG_RCX, REG_RAX, REG_TRAPNO, REG_ERR, REG_RIP, REG_CS, REG_RFL, REG_RSP, REG_SS, REG_FS, REG_GS,
	REG_ES, REG_DS, REG_FSBASE, REG_GSBASE, _NGREG
};
#define r_r0 r_rax
#define r_r1 r_rdx
#define r_fp r_rbp
#define r_sp r_rsp
#define r_pc r_rip
#define r_ps r_rfl
#else
	greg_t r_gs, r_fs, r_es, r_ds, r_edi, r_esi, r_ebp, r_esp, r_ebx, r_edx, r_ecx, r_eax, r_trapno, r_err;
	greg_t r_eip, r_cs, r_efl, r_uesp, r_ss;
};
enum { GS, FS, ES, DS, EDI, ESI, EBP, ESP, EBX, EDX, ECX, EAX, TRAPNO, ERR, EIP, CS, EFL, UESP, SS, _NGREG };
#define r_r0 r_eax
#define r_r1 r_edx
#define r_fp r_ebp
#define r_sp r_uesp
#define r_pc r_eip
#define r_ps r_efl
#endif
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
