/* The unit that FBT's patches are written in. */
#ifndef TRAPLINE_FBT_ISA_H
#define TRAPLINE_FBT_ISA_H
#include "freebsd.h"
#if defined(__x86_64__) || defined(__i386__)
typedef uint8_t fbt_patchval_t;
#else
typedef uint32_t fbt_patchval_t;
#endif
#endif
