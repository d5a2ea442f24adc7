/* Sibling calls: these functions end in a jump, so a probe on their return has no return instruction to sit on. */
#include "zoo.h"

PROBEABLE uint64_t
tail_last(uint64_t sum, unsigned left)
{
	return sum * 3 + left;
}

PROBEABLE uint64_t tail_pong(uint64_t sum, unsigned left);

PROBEABLE uint64_t
tail_ping(uint64_t sum, unsigned left)
{
	if (left == 0)
		return tail_last(sum, left);
	return tail_pong(sum + 1, left - 1);
}

PROBEABLE uint64_t
tail_pong(uint64_t sum, unsigned left)
{
	if (left == 0)
		return tail_last(sum, left + 1);
	return tail_ping(sum * 2, left - 1);
}

PROBEABLE uint64_t
tail_through(uint64_t (*function)(uint64_t, unsigned), uint64_t sum, unsigned left)
{
	return function(sum, left);
}

/* A call that is followed by work, around the tail calls: the only frame that a backtrace finds. */
PROBEABLE uint64_t
tail_caller(unsigned left)
{
	return tail_ping(1, left) + 5;
}

int
case_tailcalls(int, char **)
{
	for (unsigned left : {0u, 1u, 2u, 9u, 40u})
		say("tail_caller(%u) = %llu", left, static_cast<unsigned long long>(tail_caller(left)));
	say("tail_through(tail_pong) = %llu", static_cast<unsigned long long>(tail_through(tail_pong, 7, 3)));
	return 11;
}
