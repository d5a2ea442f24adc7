#!/usr/sbin/dtrace -s
/* watch.d - what the dtrace process itself is called here, and its arguments. */
#pragma D option quiet
#pragma D option argref

BEGIN
{
	printf("%s: %s then %d, own pid %s\n", $$0, $$1, $2, pid == $pid ? "the same" : "another");
	exit($2);
}
