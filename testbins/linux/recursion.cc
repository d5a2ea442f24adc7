/* Functions that call themselves and each other. Built without tail call optimisation: every call has its frame. */
#include "zoo.h"

PROBEABLE unsigned
fib(unsigned n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

PROBEABLE unsigned
ackermann(unsigned m, unsigned n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

PROBEABLE bool is_odd(unsigned n);

PROBEABLE bool
is_even(unsigned n)
{
	return n == 0 || is_odd(n - 1);
}

PROBEABLE bool
is_odd(unsigned n)
{
	return n != 0 && is_even(n - 1);
}

PROBEABLE unsigned
factorial(unsigned n)
{
	return n ? n * factorial(n - 1) : 1;
}

int
case_recursion(int, char **)
{
	say("fib(10) = %u", fib(10));
	say("ackermann(2, 3) = %u", ackermann(2, 3));
	say("is_even(20) = %d, is_even(7) = %d", is_even(20), is_even(7));
	say("factorial(10) = %u", factorial(10));
	return 10;
}
