/* Segment selectors. sysretq loads ss from STAR[63:48] + 8 and cs from + 16, so the order is given. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#define SEL_RPL_MASK 3

#define SEL_KCODE 0x08
#define SEL_KDATA 0x10 /* syscall loads ss from STAR[47:32] + 8 */
#define SEL_USTAR 0x1b /* not a segment: the base for sysretq */
#define SEL_UDATA 0x23
#define SEL_UCODE 0x2b
#define SEL_TSS 0x30

#endif
