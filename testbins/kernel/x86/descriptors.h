/* What machdep.c of both x86 and each ISA's descriptors.c ask of each other. */
#ifndef X86_DESCRIPTORS_H
#define X86_DESCRIPTORS_H

#define IDT_DBLFAULT 8
#define IDT_CLOCK 32

#define SDT_INTERRUPT 0x8e /* present, interrupts off on entry */
#define SDT_DPL3 0x60	   /* a program may use it: int3, into, a system call */

typedef void inthand_t(void);

void setidt(int vector, inthand_t *handler, int dpl);
void descriptors_init(void); /* the tables are complete but for what is the ISA's own: add that, and load them */

#endif
