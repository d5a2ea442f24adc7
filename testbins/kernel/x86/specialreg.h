/* Control registers and model-specific registers (Intel SDM volume 3, 2.5; volume 4). */
#ifndef SPECIALREG_H
#define SPECIALREG_H

#define CR0_PE 0x00000001 /* protected mode */
#define CR0_EM 0x00000004 /* an x87 instruction is an exception */
#define CR0_NE 0x00000020
#define CR0_WP 0x00010000 /* read-only holds for the kernel too */
#define CR0_PG 0x80000000 /* paging */
#define CR4_PAE 0x00000020 /* without OSFXSR beside it, an SSE instruction is an exception */

#define MSR_EFER 0xc0000080
#define EFER_SCE 0x001 /* syscall */
#define EFER_NXE 0x800 /* no-execute */
#define MSR_STAR 0xc0000081
#define MSR_LSTAR 0xc0000082
#define MSR_SFMASK 0xc0000084
#define MSR_GSBASE 0xc0000101
#define MSR_KGSBASE 0xc0000102

#define PSL_C 0x00000001  /* carry */
#define PSL_MBO 0x00000002 /* always 1 */
#define PSL_T 0x00000100  /* single step */
#define PSL_I 0x00000200  /* interrupts on */
#define PSL_D 0x00000400  /* string direction */
#define PSL_NT 0x00004000
#define PSL_AC 0x00040000
#define PSL_USER (PSL_MBO | PSL_I)
#define PSL_USERCHANGE 0x00254dd5 /* what a user may change: C PF AF Z N T D V NT RF AC ID */

#endif
