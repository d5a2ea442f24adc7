/* Exceptions: who is to blame, and for what. */
#include "trap.h"

#include "cpufunc.h"
#include "machdep.h"
#include "sys/machine_interface.h"
#include "sys/signal.h"

/* Page fault error code (Intel SDM volume 3, 4.7). */
#define PGEX_W 0x02
#define PGEX_I 0x10

/* What an exception is called, and the signal a program gets for it; 0: never a program's doing. */
static const struct {
	const char *name;
	int signal;
} traps[T_MAX + 1] = {
	[T_PRIVINFLT] = { "undefined instruction", SIGILL },
	[T_BPTFLT] = { "breakpoint", SIGTRAP },
	[T_ARITHTRAP] = { "x87 exception", SIGFPE },
	[T_PROTFLT] = { "general protection fault", SIGBUS },
	[T_TRCTRAP] = { "debug exception", SIGTRAP },
	[T_ALIGNFLT] = { "alignment fault", SIGBUS },
	[T_DIVIDE] = { "divide error", SIGFPE },
	[T_NMI] = { "non-maskable interrupt", 0 },
	[T_OFLOW] = { "overflow", SIGFPE },
	[T_BOUND] = { "bound exception", SIGFPE },
	[T_DNA] = { "x87 instruction", SIGILL },
	[T_DOUBLEFLT] = { "double fault", 0 },
	[T_TSSFLT] = { "invalid TSS", 0 },
	[T_SEGNPFLT] = { "segment not present", SIGBUS },
	[T_STKFLT] = { "stack fault", SIGBUS },
	[T_MCHK] = { "machine check", 0 },
	[T_XMMFLT] = { "SSE exception", SIGFPE },
	[T_RESERVED] = { "reserved exception", 0 },
};

void
trap(struct trapframe *frame)
{
	if (frame->tf_trapno == T_PAGEFLT) {
		frame->tf_addr = rcr2();
		trap_fault(frame, frame->tf_addr,
		    frame->tf_err & PGEX_I ? PROT_EXEC : frame->tf_err & PGEX_W ? PROT_WRITE : PROT_READ);
	} else if (frame->tf_trapno == T_BPTFLT && frame_is_user(frame) && dtrace_pid_probe(frame)) {
		/* a tracepoint: the frame is as the displaced instruction leaves it */
	} else if (frame_is_user(frame) && traps[frame->tf_trapno].signal != 0) {
		trap_signal(frame, traps[frame->tf_trapno].signal, frame->tf_rip);
	} else {
		trap_fatal(frame, traps[frame->tf_trapno].name);
	}
}
