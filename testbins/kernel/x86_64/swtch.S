/*
 * From one thread to another.
 */
#include "asmacros.h"

/*
 * cpu_switch(old, new)
 */
ENTRY(cpu_switch)
	movq	(%rsp), %rax
	movq	%rax, PCB_RIP(%rdi)
	movq	%rbx, PCB_RBX(%rdi)
	movq	%rbp, PCB_RBP(%rdi)
	movq	%r12, PCB_R12(%rdi)
	movq	%r13, PCB_R13(%rdi)
	movq	%r14, PCB_R14(%rdi)
	movq	%r15, PCB_R15(%rdi)
	movq	%rsp, PCB_RSP(%rdi)

	movq	PCB_RBX(%rsi), %rbx
	movq	PCB_RBP(%rsi), %rbp
	movq	PCB_R12(%rsi), %r12
	movq	PCB_R13(%rsi), %r13
	movq	PCB_R14(%rsi), %r14
	movq	PCB_R15(%rsi), %r15
	movq	PCB_RSP(%rsi), %rsp
	movq	%rsi, pcpu0+PC_CURTHREAD(%rip)

	/* Where its traps and system calls from user mode begin. */
	movq	TD_KSTACK(%rsi), %rax
	addq	TD_KSTACK_SIZE(%rsi), %rax
	movq	%rax, common_tss+TSS_RSP0(%rip)
	movq	%rax, pcpu0+PC_RSP0(%rip)

	movq	PCB_RIP(%rsi), %rax
	movq	%rax, (%rsp)
	ret
END(cpu_switch)

/*
 * Where a new thread starts: cpu_thread_start left the function in r12, its argument in rbx.
 */
ENTRY(fork_trampoline)
	movq	%rbx, %rdi
	call	*%r12
	ud2
END(fork_trampoline)
