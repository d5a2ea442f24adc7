/* Exceptions: who is to blame, and for what. */
#include "x86_64/trap_table.h"

#include "machdep.h"
#include "sys/machine_interface.h"
#include "x86_64/cpufunc.h"

void
trap(struct trapframe *frame)
{
	if (frame->tf_trapno == T_PAGEFLT) {
		trap_fault(frame, rcr2(),
		    frame->tf_err & PGEX_I ? PROT_EXEC : frame->tf_err & PGEX_W ? PROT_WRITE : PROT_READ);
	} else if (frame->tf_trapno == T_BPTFLT && frame_is_user(frame) && dtrace_pid_probe(frame)) {
		/* a tracepoint: the frame is as the displaced instruction leaves it */
	} else if (frame_is_user(frame) && traps[frame->tf_trapno].signal != 0) {
		trap_signal(frame, traps[frame->tf_trapno].signal, frame->tf_eip);
	} else {
		trap_fatal(frame, traps[frame->tf_trapno].name);
	}
}
