/* System registers (Arm ARM D17.2), for C and assembly. */
#ifndef ARMREG_H
#define ARMREG_H

#define DAIF_ALL 15 /* every kind of interrupt, in daifset and daifclr */
#define DAIF_I 2

/* ESR_ELx: the exception class says which of the meanings the rest has. */
#define ESR_EC(esr) ((esr) >> 26 & 0x3f)
#define ESR_ISS(esr) ((esr) & 0x1ffffff)
#define EXCP_UNKNOWN 0x00 /* undefined instruction */
#define EXCP_FP_SIMD 0x07 /* floating point, which is switched off */
#define EXCP_ILL_STATE 0x0e
#define EXCP_SVC64 0x15
#define EXCP_MSR 0x18 /* system register or instruction */
#define EXCP_INSN_ABORT_L 0x20 /* _L: from EL0 */
#define EXCP_INSN_ABORT 0x21
#define EXCP_PC_ALIGN 0x22
#define EXCP_DATA_ABORT_L 0x24
#define EXCP_DATA_ABORT 0x25
#define EXCP_SP_ALIGN 0x26
#define EXCP_SOFTSTP_EL0 0x32
#define EXCP_BRK 0x3c
#define ISS_DATA_WNR 0x40 /* a write */
#define ISS_FSC(esr) ((esr) & 0x3f)
#define FSC_LEVEL_MASK 0x03 /* of the three faults that follow: the level of the table */
#define FSC_TRANSLATION 0x04
#define FSC_ACCESS_FLAG 0x08
#define FSC_PERMISSION 0x0c

#define BRK_DTRACE 0x40d /* FreeBSD: sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h, DTRACE_PATCHVAL */
#define ESR_BRK_DTRACE (EXCP_BRK << 26 | 1 << 25 | BRK_DTRACE)

#define MAIR_NORMAL 0xff /* attribute 0: memory, cached write-back */

#define TCR_T0SZ_39 25 /* 64 minus the address bits of the lower half */
#define TCR_T1SZ_39 (25 << 16)
#define TCR_CACHED (5 << 8 | 5 << 24) /* table walks of both halves: inner and outer write-back */
#define TCR_SHARED (3 << 12 | 3 << 28)
#define TCR_TG1_4K 0x80000000 /* TG0: 0 */
#define TCR_IPS_40BIT 0x200000000
#define TCR_VALUE (TCR_T0SZ_39 | TCR_T1SZ_39 | TCR_CACHED | TCR_SHARED | TCR_TG1_4K | TCR_IPS_40BIT)

#define SCTLR_M 0x0001   /* MMU on */
#define SCTLR_C 0x0004
#define SCTLR_SA 0x0008  /* sp is checked: kernel */
#define SCTLR_SA0 0x0010 /* user */
#define SCTLR_I 0x1000
#define SCTLR_SET (SCTLR_M | SCTLR_C | SCTLR_SA | SCTLR_SA0 | SCTLR_I)

/* Saved program status: EL0 with all interrupts on is 0. */
#define PSR_M_MASK 0xf
#define PSR_M_EL0T 0
#define PSR_C 0x20000000
#define PSR_FLAGS 0xf0000000

/* Page and block descriptors. Attribute index 0 is MAIR_NORMAL. */
#define ATTR_BLOCK 0x001
#define ATTR_TABLE 0x003
#define ATTR_PAGE 0x003
#define ATTR_VALID 0x001
#define ATTR_AP_USER 0x040
#define ATTR_AP_RO 0x080
#define ATTR_SH_INNER 0x300
#define ATTR_AF 0x400
#define ATTR_NG 0x800 /* of one address space */
#define ATTR_PXN 0x0020000000000000 /* not to be executed by the kernel */
#define ATTR_UXN 0x0040000000000000 /* nor by the user */
#define LARGE_PAGE_SIZE 0x200000 /* what a block of the second table maps */
#define ATTR_MASK_ADDRESS 0x0000fffffffff000

#endif
