/* FreeBSD's registers, processes, locks and segments, as fasttrap_isa.c uses them. */
#ifndef TRAPLINE_FASTTRAP_FREEBSD_H
#define TRAPLINE_FASTTRAP_FREEBSD_H

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

/* A thread's scratch space, and the program's memory. */
typedef struct fasttrap_scrspace {
	uintptr_t ftss_addr;
} fasttrap_scrspace_t;
fasttrap_scrspace_t *fasttrap_scraddr(struct thread *, struct fasttrap_proc *);
uintptr_t fasttrap_fulword(const void *);
uint32_t fasttrap_fuword32(const void *);

#endif
