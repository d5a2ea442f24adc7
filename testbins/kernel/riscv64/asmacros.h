/* What every assembly file here uses. */
#ifndef ASMACROS_H
#define ASMACROS_H

#include "assym.h"

#define ENTRY(name) .text; .balign 4; .globl name; .type name, @function; name:
#define END(name) .size name, . - name
#define LONE_RETURN ret

#endif
