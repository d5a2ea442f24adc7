/*
 * From one thread to another.
 */
#include "asmacros.h"

/*
 * cpu_switch(old, new)
 */
ENTRY(cpu_switch)
	movl	4(%esp), %eax
	movl	8(%esp), %ecx
	movl	(%esp), %edx
	movl	%edx, PCB_EIP(%eax)
	movl	%ebx, PCB_EBX(%eax)
	movl	%ebp, PCB_EBP(%eax)
	movl	%esi, PCB_ESI(%eax)
	movl	%edi, PCB_EDI(%eax)
	movl	%esp, PCB_ESP(%eax)

	movl	PCB_EBX(%ecx), %ebx
	movl	PCB_EBP(%ecx), %ebp
	movl	PCB_ESI(%ecx), %esi
	movl	PCB_EDI(%ecx), %edi
	movl	PCB_ESP(%ecx), %esp
	movl	%ecx, pcpu0+PC_CURTHREAD

	/* Where its traps and system calls from user mode begin. */
	movl	TD_KSTACK(%ecx), %eax
	addl	TD_KSTACK_SIZE(%ecx), %eax
	movl	%eax, common_tss+TSS_ESP0

	movl	PCB_EIP(%ecx), %eax
	movl	%eax, (%esp)
	ret
END(cpu_switch)

/*
 * Where a new thread starts: cpu_thread_start left the function in esi, its argument in ebx.
 */
ENTRY(fork_trampoline)
	pushl	%ebx
	call	*%esi
	ud2
END(fork_trampoline)
