#ifndef __ASSEMBLER__
#pragma GCC visibility push(hidden)
#endif
