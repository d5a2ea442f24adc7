#!/usr/sbin/dtrace -s
/* when.d - by the clock on the wall. */
#pragma D option quiet

fbt::sys_read:entry
/stamp != (walltimestamp / 1000000)/
{
	stamp = walltimestamp / 1000000;
	printf("%Y %03d ms: %s\n", walltimestamp, walltimestamp / 1000000 % 1000, execname);
}
