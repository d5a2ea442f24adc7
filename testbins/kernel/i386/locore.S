/*
 * From the loader's world, protected mode at physical addresses with paging off, to kmain(ram_size, initrd, initrd_size)
 * at kernel addresses. The three come as a C function's arguments, on a stack the loader made.
 */
#include "asmacros.h"
#include "segments.h"
#include "specialreg.h"

ENTRY(_start)
	cli
	cld
	movl	4(%esp), %ebx
	movl	8(%esp), %esi
	movl	12(%esp), %edi
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_NXE, %eax
	wrmsr
	movl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$boot_pdpt - KERNBASE, %eax
	movl	%eax, %cr3
	movl	$(CR0_PE | CR0_EM | CR0_NE | CR0_WP | CR0_PG), %eax
	movl	%eax, %cr0
	movl	$1f, %eax
	jmp	*%eax
1:
	movl	$kstack0 + KSTACK0_SIZE, %esp
	xorl	%ebp, %ebp		/* the walk of kernel frames ends here */
	pushl	%edi
	pushl	%esi
	pushl	%ebx
	call	kmain
	ud2				/* it does not return, and a return address must lie in its function */
END(_start)

/*
 * lgdt(descriptor): a new descriptor table counts when the segment registers are loaded from it.
 */
ENTRY(lgdt)
	movl	4(%esp), %eax
	lgdt	(%eax)
	movl	$SEL_KDATA, %eax
	movl	%eax, %ss
	movl	%eax, %ds
	movl	%eax, %es
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
	popl	%eax
	pushl	$SEL_KCODE
	pushl	%eax
	lret
END(lgdt)

#include "boot_map.h"
/*
 * The tables above it: the first GiB of memory is at its physical addresses for the code above and at KERNBASE.
 */
boot_pdpt:
	.long	boot_pd - KERNBASE + PG_PRESENT, 0
	.fill	2, 8, 0
	.long	boot_pd - KERNBASE + PG_PRESENT, 0
