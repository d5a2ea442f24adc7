/* trap.S as illumos has it: it begins with what the CPU has pushed, and gives dtrace_invop a stack. */
#define ILLUMOS
#include "trap.S"
