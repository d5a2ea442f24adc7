/* What a trap of the kernel saves, for scanner.c and subr.c. */
#include <stdint.h>

typedef unsigned long word;

struct trapframe {
#if defined(__x86_64__)
	/* What trap.S expects. */
	word tf_rax, tf_rbx, tf_rcx, tf_rdx, tf_rsi, tf_rdi, tf_rbp, tf_r8;
	word tf_r9, tf_r10, tf_r11, tf_r12, tf_r13, tf_r14, tf_r15, tf_addr, tf_err;
	word tf_rip, tf_cs, tf_rflags, tf_rsp, tf_ss;
#elif defined(__i386__)
	word tf_edi, tf_esi, tf_ebp, tf_isp, tf_ebx, tf_edx, tf_ecx, tf_eax, tf_eip, tf_cs, tf_eflags;
#elif defined(__aarch64__)
	word tf_sp, tf_lr, tf_elr, tf_far, tf_x[30];
#else
	word tf_ra, tf_sp, tf_a[8], tf_sepc, tf_stval;
#endif
};
