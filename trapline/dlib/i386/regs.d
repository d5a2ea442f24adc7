/* Indices of regs[] and uregs[] on i386 (FreeBSD sys/cddl/dev/dtrace/x86/regset.h). */

inline int R_GS = 0;
inline int R_FS = 1;
inline int R_ES = 2;
inline int R_DS = 3;
inline int R_EDI = 4;
inline int R_ESI = 5;
inline int R_EBP = 6;
inline int R_ESP = 7;
inline int R_EBX = 8;
inline int R_EDX = 9;
inline int R_ECX = 10;
inline int R_EAX = 11;
inline int R_TRAPNO = 12;
inline int R_ERR = 13;
inline int R_EIP = 14;
inline int R_CS = 15;
inline int R_EFL = 16;
inline int R_UESP = 17;
inline int R_SS = 18;
inline int R_PC = R_EIP;
inline int R_SP = R_UESP;
inline int R_PS = R_EFL;
inline int R_R0 = R_EAX;
inline int R_R1 = R_EBX;
