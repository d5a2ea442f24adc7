/* The probe of an exhibit that is a part of uprobes. */
#include "../decoding.h"

struct mm_struct {
	unsigned long flags;
};
struct arch_uprobe {
	_Bool simulate;
	uint32_t insn;
	uint8_t more[12];
};
