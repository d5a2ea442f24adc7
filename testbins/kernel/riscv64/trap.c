/* What a trap means (FreeBSD sys/riscv/riscv/trap.c). */
#include "dtrace_subr.h"
#include "riscvreg.h"
#include "sys/machine_interface.h"
#include "sys/signal.h"

void do_trap_supervisor(struct trapframe *frame);
void do_trap_user(struct trapframe *frame);
void kernel_stack_overflow(struct trapframe *frame);

static const struct {
	const char *name;
	int signal;	/* a program gets it */
	int access;	/* page faults: what was tried */
} causes[] = {
	[SCAUSE_INST_MISALIGNED] = { "misaligned instruction", SIGBUS, 0 },
	[SCAUSE_INST_ACCESS_FAULT] = { "instruction access fault", SIGBUS, 0 },
	[SCAUSE_ILLEGAL_INSTRUCTION] = { "illegal instruction", SIGILL, 0 },
	[SCAUSE_BREAKPOINT] = { "breakpoint", SIGTRAP, 0 },
	[SCAUSE_LOAD_MISALIGNED] = { "misaligned load", SIGBUS, 0 },
	[SCAUSE_LOAD_ACCESS_FAULT] = { "load access fault", SIGBUS, 0 },
	[SCAUSE_STORE_MISALIGNED] = { "misaligned store", SIGBUS, 0 },
	[SCAUSE_STORE_ACCESS_FAULT] = { "store access fault", SIGBUS, 0 },
	[SCAUSE_INST_PAGE_FAULT] = { "instruction page fault", SIGSEGV, PROT_EXEC },
	[SCAUSE_LOAD_PAGE_FAULT] = { "load page fault", SIGSEGV, PROT_READ },
	[SCAUSE_STORE_PAGE_FAULT] = { "store page fault", SIGSEGV, PROT_WRITE },
};
#define NCAUSES (sizeof(causes) / sizeof(causes[0]))

static void
riscv_cpu_intr(struct trapframe *frame)
{
	csr_clear(sip, SIP_SSIP); /* the clock is the only interrupt there is */
	hardclock(frame);
}

void
do_trap_supervisor(struct trapframe *frame)
{
	uint64_t cause = frame->tf_scause;

	if (cause & SCAUSE_INTERRUPT) {
		riscv_cpu_intr(frame);
		return;
	}
	if (cause == SCAUSE_BREAKPOINT && dtrace_invop_start(frame) == 0)
		return;
	if (cause < NCAUSES && causes[cause].access != 0)
		trap_fault(frame, frame->tf_stval, causes[cause].access);
	else
		trap_fatal(frame, cause < NCAUSES && causes[cause].name != NULL ? causes[cause].name : "unknown trap");
}

void
do_trap_user(struct trapframe *frame)
{
	uint64_t cause = frame->tf_scause;

	if (cause & SCAUSE_INTERRUPT)
		riscv_cpu_intr(frame);
	else if (cause == SCAUSE_ECALL_USER) {
		frame->tf_sepc += 4;
		syscall(frame);
	} else if (cause == SCAUSE_BREAKPOINT && dtrace_pid_probe(frame))
		return; /* a tracepoint: the frame is as the displaced instruction leaves it */
	else if (cause < NCAUSES && causes[cause].access != 0)
		trap_fault(frame, frame->tf_stval, causes[cause].access);
	else if (cause < NCAUSES && causes[cause].name != NULL)
		trap_signal(frame, causes[cause].signal, frame->tf_sepc);
	else
		trap_fatal(frame, "unknown trap of user mode");
}

/* exception.S found no room for a frame on the kernel stack; we are on the emergency stack. */
void
kernel_stack_overflow(struct trapframe *frame)
{
	trap_fatal(frame, "kernel stack overflow");
}
