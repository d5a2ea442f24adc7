/* The gates' bodies: an ISA's asmacros.h says how a function begins and ends, and what its lone return instruction is. */
#include "asmacros.h"

#define GATE(type, name, parameters) ENTRY(name) LONE_RETURN; END(name)
#include "sys/gates.def"
