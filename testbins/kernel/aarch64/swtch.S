/*
 * From one thread to another.
 */
#include "asmacros.h"

/*
 * cpu_switch(old, new)
 */
ENTRY(cpu_switch)
	add	x2, x0, #PCB_X
	stp	x19, x20, [x2, #(0 * 8)]
	stp	x21, x22, [x2, #(2 * 8)]
	stp	x23, x24, [x2, #(4 * 8)]
	stp	x25, x26, [x2, #(6 * 8)]
	stp	x27, x28, [x2, #(8 * 8)]
	stp	x29, x30, [x2, #(10 * 8)]
	mov	x3, sp
	str	x3, [x0, #PCB_SP]

	ldr	x3, [x1, #PCB_SP]
	mov	sp, x3
	add	x2, x1, #PCB_X
	ldp	x19, x20, [x2, #(0 * 8)]
	ldp	x21, x22, [x2, #(2 * 8)]
	ldp	x23, x24, [x2, #(4 * 8)]
	ldp	x25, x26, [x2, #(6 * 8)]
	ldp	x27, x28, [x2, #(8 * 8)]
	ldp	x29, x30, [x2, #(10 * 8)]

	ldr	x2, =pcpu0
	str	x1, [x2, #PC_CURTHREAD]
	ldr	x3, [x1, #TD_KSTACK]
	add	x3, x3, #(TF_SIZE + TF_GAP)
	str	x3, [x2, #PC_KSTACK_LIMIT]
	ret
END(cpu_switch)

/*
 * Where a new thread starts: cpu_thread_start left the function in x19, its argument in x20.
 */
ENTRY(fork_trampoline)
	mov	x0, x20
	blr	x19
	udf	#0
END(fork_trampoline)
