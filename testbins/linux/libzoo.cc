/* Functions with 0 to 9 arguments, with strings, with narrow types. From the seventh (x86-64) or ninth on, arguments are on the stack. */
#include "args.h"

#include "sdt.h"

#include <cstring>

long
arg0()
{
	return 1000;
}

long
arg1(long a)
{
	return a + 1;
}

long
arg2(long a, long b)
{
	return a * 2 + b;
}

long
arg3(long a, long b, long c)
{
	return arg2(a, b) * 2 + c;
}

long
arg4(long a, long b, long c, long d)
{
	return arg3(a, b, c) * 2 + d;
}

long
arg5(long a, long b, long c, long d, long e)
{
	return arg4(a, b, c, d) * 2 + e;
}

long
arg6(long a, long b, long c, long d, long e, long f)
{
	return arg5(a, b, c, d, e) * 2 + f;
}

long
arg7(long a, long b, long c, long d, long e, long f, long g)
{
	return arg6(a, b, c, d, e, f) * 2 + g;
}

long
arg8(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return arg7(a, b, c, d, e, f, g) * 2 + h;
}

long
arg9(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	return arg8(a, b, c, d, e, f, g, h) * 2 + i;
}

size_t
greet(const char *name)
{
	size_t length = strlen(name);
	MARKER(library__greet, name, length);
	return length;
}

const char *
choose(int which)
{
	static const char *const words[] = {"zero", "one", "two"};
	return which >= 0 && which < 3 ? words[which] : nullptr;
}

int
narrow(signed char a, unsigned char b, short c, unsigned short d, int e)
{
	return a + b + c + d + e;
}

long
apply(long (*function)(long), long value)
{
	return function(value) + 1;
}
