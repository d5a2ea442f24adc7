/* Calls of everything in libzoo.cc with arguments that tell each other apart. */
#include "args.h"

int
case_args(int, char **)
{
	say("arg0 %ld", arg0());
	say("arg1 %ld", arg1(1));
	say("arg2 %ld", arg2(1, 2));
	say("arg3 %ld", arg3(1, 2, 3));
	say("arg4 %ld", arg4(1, 2, 3, 4));
	say("arg5 %ld", arg5(1, 2, 3, 4, 5));
	say("arg6 %ld", arg6(1, 2, 3, 4, 5, 6));
	say("arg7 %ld", arg7(1, 2, 3, 4, 5, 6, 7));
	say("arg8 %ld", arg8(1, 2, 3, 4, 5, 6, 7, 8));
	say("arg9 %ld", arg9(1, 2, 3, 4, 5, 6, 7, 8, 9));
	say("arg9, negative, %ld", arg9(-1, -2, -3, -4, -5, -6, -7, -8, -9));
	for (const char *name : {"world", "", "a name that is longer than one line of a cache is"})
		say("greet %zu", greet(name));
	for (int which = 0; which < 4; which++)
		say("choose %s", choose(which) ? choose(which) : "nothing");
	say("narrow %d", narrow(-1, 255, -2, 65535, -3));
	say("apply %ld", apply(arg1, 40));
	return 22;
}
