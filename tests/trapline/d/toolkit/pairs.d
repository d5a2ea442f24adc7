#!/usr/sbin/dtrace -s
/* pairs.d - time between two functions, keyed by process and descriptor. */
#pragma D option quiet
#pragma D option dynvarsize=64k

fbt::sys_read:entry
{
	began[pid, args[1]->fd] = timestamp;
}

fbt::malloc:entry
/began[pid, 3]/
{
	printf("%s: malloc %d us after read\n", execname, (timestamp - began[pid, 3]) / 1000);
	began[pid, 3] = 0;
}
