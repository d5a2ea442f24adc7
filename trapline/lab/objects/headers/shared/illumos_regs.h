/* illumos' saved registers, for all packs of that system. */
#ifndef TRAPLINE_ILLUMOS_REGS_H
#define TRAPLINE_ILLUMOS_REGS_H

/* The registers of a program in the order of struct regs, and the numbers of <sys/regset.h>. */
struct regs {
	greg_t r_savfp, r_savpc;
#if defined(__x86_64__)
	greg_t r_rdi, r_rsi, r_rdx, r_rcx, r_r8, r_r9, r_rax, r_rbx, r_rbp, r_r10, r_r11, r_r12, r_r13, r_r14, r_r15;
	greg_t r_fsbase, r_gsbase, r_ds, r_es, r_fs, r_gs, r_trapno, r_err, r_rip, r_cs, r_rfl, r_rsp, r_ss;
};
enum {
	REG_R15, REG_R14, REG_R13, REG_R12, REG_R11, REG_R10, REG_R9, REG_R8, REG_RDI, REG_RSI, REG_RBP, REG_RBX,
	REG_RDX, REG_RCX, REG_RAX, REG_TRAPNO, REG_ERR, REG_RIP, REG_CS, REG_RFL, REG_RSP, REG_SS, REG_FS, REG_GS,
	REG_ES, REG_DS, REG_FSBASE, REG_GSBASE, _NGREG
};
#define r_r0 r_rax
#define r_r1 r_rdx
#define r_fp r_rbp
#define r_sp r_rsp
#define r_pc r_rip
#define r_ps r_rfl
#else
	greg_t r_gs, r_fs, r_es, r_ds, r_edi, r_esi, r_ebp, r_esp, r_ebx, r_edx, r_ecx, r_eax, r_trapno, r_err;
	greg_t r_eip, r_cs, r_efl, r_uesp, r_ss;
};
enum { GS, FS, ES, DS, EDI, ESI, EBP, ESP, EBX, EDX, ECX, EAX, TRAPNO, ERR, EIP, CS, EFL, UESP, SS, _NGREG };
#define r_r0 r_eax
#define r_r1 r_edx
#define r_fp r_ebp
#define r_sp r_uesp
#define r_pc r_eip
#define r_ps r_efl
#endif

#endif
