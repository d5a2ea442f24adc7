/* A switch dense enough to become a table of jumps. */
#include "zoo.h"

PROBEABLE unsigned
dispatch(unsigned operation, unsigned value)
{
	/* The empty assembly keeps the arms apart: equal arms would become a table of values. */
	switch (operation) {
	case 0: asm volatile(""); return value + 1;
	case 1: asm volatile(""); return value * 3;
	case 2: asm volatile(""); return value ^ 0x55;
	case 3: asm volatile(""); return value << 2;
	case 4: asm volatile(""); return value >> 1;
	case 5: asm volatile(""); return ~value;
	case 6: asm volatile(""); return value - 9;
	case 7: asm volatile(""); return value | 0x100;
	case 8: asm volatile(""); return value & 0xff;
	case 9: asm volatile(""); return value / 3;
	case 10: asm volatile(""); return value % 1000;
	case 11: asm volatile(""); return 0u - value;
	default: return 0xdead;
	}
}

int
case_switchcase(int, char **)
{
	unsigned value = 7;
	for (unsigned i = 0; i < 13; i++)
		say("dispatch(%u, %u) = %u", i, value, dispatch(i, value));
	for (unsigned i = 0; i < 60; i++)
		value = dispatch(i * 5 % 12, value);
	say("value %u", value);
	return 21;
}
