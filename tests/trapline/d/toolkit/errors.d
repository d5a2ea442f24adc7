#!/usr/sbin/dtrace -s
/* errors.d - faults are told by ERROR, and do not end the trace. */
#pragma D option quiet

dtrace:::ERROR
{
	printf("fault %d in action %d of enabling %d\n", arg4, arg2, arg1);
	@faults[arg4 == DTRACEFLT_BADADDR ? "bad address" : arg4 == DTRACEFLT_DIVZERO ? "division" : "other"] = count();
}

fbt::malloc:entry
{
	trace(*(int *)arg1);
}

fbt::malloc:return
{
	trace(100 / (arg1 - arg1));
}
