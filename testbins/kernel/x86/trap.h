/* Trap numbers: FreeBSD's (sys/x86/include/trap.h), which are not the processor's vectors. */
#ifndef TRAP_H
#define TRAP_H

#define T_PRIVINFLT 1  /* undefined instruction */
#define T_BPTFLT 3     /* breakpoint */
#define T_ARITHTRAP 6  /* x87 error */
#define T_PROTFLT 9    /* general protection */
#define T_TRCTRAP 10   /* debug: single step */
#define T_PAGEFLT 12
#define T_ALIGNFLT 14
#define T_DIVIDE 18
#define T_NMI 19
#define T_OFLOW 20
#define T_BOUND 21
#define T_DNA 22       /* no x87 */
#define T_DOUBLEFLT 23
#define T_TSSFLT 25
#define T_SEGNPFLT 26
#define T_STKFLT 27
#define T_MCHK 28
#define T_XMMFLT 29
#define T_RESERVED 30  /* a vector the processor does not use */
#define T_MAX T_RESERVED

#endif
