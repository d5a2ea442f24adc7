#!/usr/sbin/dtrace -s
/* newproc.d - the first read of each program, as execsnoop shows the first of each exec. */
#pragma D option quiet
#pragma D option switchrate=10hz

dtrace:::BEGIN
{
	printf("%-6s %-6s %-10s %s\n", "PID", "PPID", "PROGRAM", "ARGS");
}

fbt::sys_read:entry
/!seen[pid]/
{
	seen[pid] = 1;
	printf("%-6d %-6d %-10s %S\n", pid, ppid, execname, execargs);
}
