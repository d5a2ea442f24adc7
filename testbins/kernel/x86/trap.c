/* Exceptions: their cause, and the signal for it. */
#include "trap_table.h"

#include "cpufunc.h"
#include "machdep.h"
#include "sys/machine_interface.h"

void
trap(struct trapframe *frame)
{
	if (frame->tf_trapno == T_PAGEFLT) {
		vaddr_t address = rcr2(); /* now: the next page fault overwrites it */

		frame_set_fault_address(frame, address);
		trap_fault(frame, address,
		    frame->tf_err & PGEX_I ? PROT_EXEC : frame->tf_err & PGEX_W ? PROT_WRITE : PROT_READ);
	} else if (frame->tf_trapno == T_BPTFLT && frame_is_user(frame) && dtrace_pid_probe(frame)) {
		/* a tracepoint: the frame is as the displaced instruction leaves it */
	} else if (frame_is_user(frame) && traps[frame->tf_trapno].signal != 0) {
		trap_signal(frame, traps[frame->tf_trapno].signal, frame_pc(frame));
	} else {
		trap_fatal(frame, traps[frame->tf_trapno].name);
	}
}
