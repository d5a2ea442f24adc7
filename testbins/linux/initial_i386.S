/* Writes the registers as they are when a program starts: 8 general ones, the flags, the segments, then fxsave's 512 bytes. */
	.globl _start
	.type _start, @function
_start:
	mov %eax, general
	mov %ecx, general+4
	mov %edx, general+8
	mov %ebx, general+12
	mov %esp, general+16
	mov %ebp, general+20
	mov %esi, general+24
	mov %edi, general+28
	pushf
	pop flags
	mov %cs, segments
	mov %ss, segments+4
	mov %ds, segments+8
	mov %es, segments+12
	mov %fs, segments+16
	mov %gs, segments+20
	fxsave vectors
	mov $4, %eax
	mov $1, %ebx
	mov $general, %ecx
	mov $end - general, %edx
	int $0x80
	mov $1, %eax
	xor %ebx, %ebx
	int $0x80
	.size _start, . - _start

	.bss
	.balign 64
general:
	.skip 8 * 4
flags:
	.skip 4
segments:
	.skip 7 * 4
vectors:
	.skip 512
end:
