/* Jumps over frames: functions that are entered and never return. */
#include "zoo.h"

#include <csetjmp>

namespace {

jmp_buf outer;
jmp_buf inner;
volatile int entered;
volatile int returned;

} // namespace

PROBEABLE void
jump_away(int value)
{
	if (value % 3 == 2)
		longjmp(inner, value);
	if (value > 0)
		longjmp(outer, value);
}

PROBEABLE int
jump_middle(int value, int depth)
{
	volatile int kept = value * 10 + depth;
	entered = entered + 1;
	if (depth)
		jump_middle(value, depth - 1);
	else
		jump_away(value);
	returned = returned + 1;
	return kept;
}

PROBEABLE int
jump_catcher(int value)
{
	int got = setjmp(inner);
	if (got)
		return -got;
	return jump_middle(value, 3);
}

PROBEABLE void
jump_outermost(int value)
{
	int got = setjmp(outer);
	if (got == 0)
		say("%d: came back with %d", value, jump_catcher(value));
	else
		say("%d: jumped out", got);
}

int
case_setjmp(int, char **)
{
	for (int value = 0; value < 6; value++)
		jump_outermost(value);
	say("entered %d, returned %d", entered, returned);
	return 12;
}
