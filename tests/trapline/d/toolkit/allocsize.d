#!/usr/sbin/dtrace -s
/* allocsize.d - sizes of allocations: linear, and log-linear. */
#pragma D option quiet

fbt::malloc:entry
{
	@linear["bytes"] = lquantize(args[0], 0, 1200, 100);
	@log["bytes"] = llquantize(args[0], 10, 0, 3, 10);
}

END
{
	printa("%s by hundreds%@d\n", @linear);
	printa("%s by magnitude%@d\n", @log);
}
