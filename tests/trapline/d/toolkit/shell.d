#!/usr/sbin/dtrace -ws
/* shell.d - acts: has the host's shell do something for each program seen. */
#pragma D option quiet

fbt::sys_read:entry
/!done[execname]/
{
	done[execname] = 1;
	system("echo %s has pid %d", execname, pid);
}
