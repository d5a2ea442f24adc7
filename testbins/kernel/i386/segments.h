/* Segment selectors: flat segments of 4 GiB, and two task state segments. */
#ifndef SEGMENTS_H
#define SEGMENTS_H

#define SEL_RPL_MASK 3

#define SEL_KCODE 0x08
#define SEL_KDATA 0x10
#define SEL_UCODE 0x1b
#define SEL_UDATA 0x23
#define SEL_TSS 0x28
#define SEL_DBLFLT_TSS 0x30

#endif
