/* The functions of libzoo.so; the static program contains them. */
#ifndef ARGS_H
#define ARGS_H

#include "zoo.h"

PROBEABLE long arg0();
PROBEABLE long arg1(long a);
PROBEABLE long arg2(long a, long b);
PROBEABLE long arg3(long a, long b, long c);
PROBEABLE long arg4(long a, long b, long c, long d);
PROBEABLE long arg5(long a, long b, long c, long d, long e);
PROBEABLE long arg6(long a, long b, long c, long d, long e, long f);
PROBEABLE long arg7(long a, long b, long c, long d, long e, long f, long g);
PROBEABLE long arg8(long a, long b, long c, long d, long e, long f, long g, long h);
PROBEABLE long arg9(long a, long b, long c, long d, long e, long f, long g, long h, long i);
PROBEABLE size_t greet(const char *name);
PROBEABLE const char *choose(int which);
PROBEABLE int narrow(signed char a, unsigned char b, short c, unsigned short d, int e);
PROBEABLE long apply(long (*function)(long), long value);

#endif
