/*
 * From the loader's world, long mode at physical addresses with paging off, to kmain(ram_size, initrd, initrd_size) at
 * kernel addresses.
 */
#include "asmacros.h"
#include "segments.h"
#include "specialreg.h"

ENTRY(_start)
	cli
	cld
	movq	%rdx, %r8		/* wrmsr uses rdx */
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$(EFER_SCE | EFER_NXE), %eax
	wrmsr
	movl	$CR4_PAE, %eax
	movq	%rax, %cr4
	leaq	boot_pml4(%rip), %rax
	movq	%rax, %cr3
	movl	$(CR0_PE | CR0_EM | CR0_NE | CR0_WP | CR0_PG), %eax
	movq	%rax, %cr0
	movq	$1f, %rax
	jmp	*%rax
1:
	movq	$kstack0 + KSTACK0_SIZE, %rsp
	xorl	%ebp, %ebp		/* the walk of kernel frames ends here */
	movq	%r8, %rdx
	call	kmain
	ud2				/* it does not return, and a return address must lie in its function */
END(_start)

/*
 * lgdt(descriptor): a new descriptor table counts when the segment registers are loaded from it. gs has its base from
 * MSR_GSBASE, to be written after this.
 */
ENTRY(lgdt)
	lgdt	(%rdi)
	movl	$SEL_KDATA, %eax
	movl	%eax, %ss
	movl	%eax, %ds
	movl	%eax, %es
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
	popq	%rax
	pushq	$SEL_KCODE
	pushq	%rax
	lretq
END(lgdt)

#include "boot_map.h"
/*
 * The tables above it: the first GiB of memory is at its physical addresses for the code above and at KERNBASE.
 */
boot_pml4:
	.quad	boot_pdpt_low - KERNBASE + PG_PRESENT + PG_WRITE
	.fill	510, 8, 0
	.quad	boot_pdpt_high - KERNBASE + PG_PRESENT + PG_WRITE
boot_pdpt_low:
	.quad	boot_pd - KERNBASE + PG_PRESENT + PG_WRITE
	.fill	511, 8, 0
boot_pdpt_high:
	.fill	510, 8, 0
	.quad	boot_pd - KERNBASE + PG_PRESENT + PG_WRITE
	.quad	0
