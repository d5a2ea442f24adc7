/* Writes the registers as they are when a program starts: 16 general ones, the flags, the segments, then fxsave's 512 bytes. */
	.globl _start
	.type _start, @function
_start:
	mov %rax, general(%rip)
	mov %rcx, general+8(%rip)
	mov %rdx, general+16(%rip)
	mov %rbx, general+24(%rip)
	mov %rsp, general+32(%rip)
	mov %rbp, general+40(%rip)
	mov %rsi, general+48(%rip)
	mov %rdi, general+56(%rip)
	mov %r8, general+64(%rip)
	mov %r9, general+72(%rip)
	mov %r10, general+80(%rip)
	mov %r11, general+88(%rip)
	mov %r12, general+96(%rip)
	mov %r13, general+104(%rip)
	mov %r14, general+112(%rip)
	mov %r15, general+120(%rip)
	pushf
	pop flags(%rip)
	mov %cs, segments(%rip)
	mov %ss, segments+8(%rip)
	mov %ds, segments+16(%rip)
	mov %es, segments+24(%rip)
	mov %fs, segments+32(%rip)
	mov %gs, segments+40(%rip)
	fxsave vectors(%rip)
	mov $1, %eax
	mov $1, %edi
	lea general(%rip), %rsi
	mov $end - general, %edx
	syscall
	mov $60, %eax
	xor %edi, %edi
	syscall
	.size _start, . - _start

	.bss
	.balign 64
general:
	.skip 16 * 8
flags:
	.skip 8
segments:
	.skip 7 * 8
vectors:
	.skip 512
end:
