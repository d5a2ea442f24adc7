/* Exceptions: their cause, and the signal for it. */
#include "armreg.h"
#include "machdep.h"
#include "sys/machine_interface.h"
#include "sys/signal.h"

/* What an exception class is called, and the signal a program gets for it. */
static const struct {
	const char *name;
	int signal;
} exceptions[] = {
	[EXCP_UNKNOWN] = { "undefined instruction", SIGILL },
	[EXCP_FP_SIMD] = { "floating-point instruction", SIGILL },
	[EXCP_ILL_STATE] = { "illegal execution state", SIGILL },
	[EXCP_MSR] = { "system instruction", SIGILL },
	[EXCP_INSN_ABORT_L] = { "external abort on a fetch", SIGBUS },
	[EXCP_INSN_ABORT] = { "external abort on a fetch", SIGBUS },
	[EXCP_PC_ALIGN] = { "misaligned pc", SIGBUS },
	[EXCP_DATA_ABORT_L] = { "external abort or misaligned access", SIGBUS },
	[EXCP_DATA_ABORT] = { "external abort or misaligned access", SIGBUS },
	[EXCP_SP_ALIGN] = { "misaligned sp", SIGBUS },
	[EXCP_SOFTSTP_EL0] = { "single step", SIGTRAP },
	[EXCP_BRK] = { "breakpoint", SIGTRAP },
};

static const char *
exception_name(uint64_t class)
{
	return class < nitems(exceptions) && exceptions[class].name != NULL ? exceptions[class].name
									    : "unknown exception";
}

/*
 * An abort that is a page fault goes to the virtual memory system; says whether it was one.
 */
static bool
page_fault(struct trapframe *frame)
{
	int access;

	switch (ESR_EC(frame->tf_esr)) {
	case EXCP_INSN_ABORT:
	case EXCP_INSN_ABORT_L:
		access = PROT_EXEC;
		break;
	case EXCP_DATA_ABORT:
	case EXCP_DATA_ABORT_L:
		access = frame->tf_esr & ISS_DATA_WNR ? PROT_WRITE : PROT_READ;
		break;
	default:
		return false;
	}
	switch (ISS_FSC(frame->tf_esr) & ~FSC_LEVEL_MASK) {
	case FSC_TRANSLATION:
	case FSC_ACCESS_FLAG:
	case FSC_PERMISSION:
		trap_fault(frame, frame->tf_far, access);
		return true;
	default:
		return false;
	}
}

void
trap_el0(struct trapframe *frame)
{
	uint64_t class = ESR_EC(frame->tf_esr);

	if (class == EXCP_SVC64)
		syscall(frame);
	else if (class == EXCP_BRK && dtrace_pid_probe(frame))
		return; /* a tracepoint: the frame is as the displaced instruction leaves it */
	else if (!page_fault(frame))
		trap_signal(frame, class < nitems(exceptions) && exceptions[class].signal != 0 ? exceptions[class].signal : SIGILL,
		    frame->tf_elr);
}

void
trap_el1h(struct trapframe *frame)
{
	if (!page_fault(frame))
		trap_fatal(frame, exception_name(ESR_EC(frame->tf_esr)));
}

void
trap_stack_overflow(struct trapframe *frame)
{
	trap_fatal(frame, "kernel stack overflow");
}

void
trap_unexpected(struct trapframe *frame)
{
	trap_fatal(frame, "unexpected exception vector");
}
