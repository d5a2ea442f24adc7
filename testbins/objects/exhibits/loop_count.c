/*
 * The exhibit loop-count, in C as fasttrap of x86 has it: loop is emulated, and everything else
 * executed in the thread's scratch space, with a jump behind it.  BUGGY: the emulated loop tests the
 * count before it decrements it.
 */
#include <stdint.h>

struct reg {
#if defined(__x86_64__)
	uint64_t r_r15, r_r14, r_r13, r_r12, r_r11, r_r10, r_r9, r_r8, r_rdi, r_rsi, r_rbp, r_rbx, r_rdx, r_rcx, r_rax;
	uint64_t r_rip, r_rflags, r_rsp;
#define R_PC r_rip
#define R_CX r_rcx
#else
	uint32_t r_edi, r_esi, r_ebp, r_ebx, r_edx, r_ecx, r_eax, r_eip, r_eflags, r_esp;
#define R_PC r_eip
#define R_CX r_ecx
#endif
};
struct proc {
	int p_model, p_pid;
	void *p_vmspace;
	struct proc *p_pptr;
};
struct thread {
	struct reg *td_frame;
	uint8_t t_dtrace_step;
};
typedef struct {
	uint64_t ftpc_acount;
} fasttrap_proc_t;
typedef struct {
	fasttrap_proc_t *ftt_proc;
	uintptr_t ftt_pc;
	int ftt_pid;
	uint8_t ftt_instr[15], ftt_size, ftt_type;
} fasttrap_tracepoint_t;
typedef struct {
	fasttrap_tracepoint_t *ftb_data;
} fasttrap_bucket_t;
typedef struct {
	fasttrap_bucket_t *fth_table;
} fasttrap_hash_t;
typedef struct {
	uintptr_t ftss_addr;
} fasttrap_scrspace_t;

extern struct thread trapline_thread;
extern fasttrap_hash_t fasttrap_tpoints;
void *memcpy(void *, const void *, unsigned long);
int uread(struct proc *, void *, unsigned long, uintptr_t);
int dtrace_instr_size_isa(uint8_t *, int, int *);
fasttrap_scrspace_t *fasttrap_scraddr(struct thread *, fasttrap_proc_t *);
int fasttrap_copyout(const void *, void *, unsigned long);

int
fasttrap_tracepoint_init(struct proc *process, fasttrap_tracepoint_t *tp, uintptr_t pc, int type)
{
	int modrm, size;

	(void)type;
	if (uread(process, tp->ftt_instr, sizeof(tp->ftt_instr), pc))
		return -1;
	size = dtrace_instr_size_isa(tp->ftt_instr, process->p_model, &modrm);
	if (size <= 0)
		return -1;
	tp->ftt_size = size;
	tp->ftt_type = tp->ftt_instr[0] == 0xe2 ? 2 : 0;
	return 0;
}

int
fasttrap_pid_probe(struct reg *registers)
{
	fasttrap_tracepoint_t *tp = fasttrap_tpoints.fth_table[0].ftb_data;
	uintptr_t place, pc = tp->ftt_pc + tp->ftt_size;
	uint8_t scratch[20];

	if (tp->ftt_type) {
#ifdef BUGGY
		if (registers->R_CX-- != 0)
#else
		if (--registers->R_CX != 0)
#endif
			pc += (int8_t)tp->ftt_instr[1];
		registers->R_PC = pc;
		return 0;
	}
	place = fasttrap_scraddr(&trapline_thread, tp->ftt_proc)->ftss_addr;
	memcpy(scratch, tp->ftt_instr, tp->ftt_size);
	scratch[tp->ftt_size] = 0xe9;
	*(int32_t *)&scratch[tp->ftt_size + 1] = tp->ftt_pc - place - 5;
	if (fasttrap_copyout(scratch, (void *)place, tp->ftt_size + 5))
		return -1;
	registers->R_PC = place;
	return 0;
}
