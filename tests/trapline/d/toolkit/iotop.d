#!/usr/sbin/dtrace -s
/* iotop.d - who reads most, refreshed; the manner of iotop and rwtop. */
#pragma D option quiet

inline int TOP = 5;

BEGIN { start = timestamp; secs = total = 0; }

fbt::sys_read:return
/arg1 > 0/
{
	@bytes[uid, pid, ppid, execname] = sum(arg1);
	total += arg1;
}

profile:::tick-1ms
{
	secs++;
	printf("%d ms, read: %6d bytes\n", secs, total);
	trunc(@bytes, TOP);
	printa("%6d %6d %6d %-12s %@12d\n", @bytes);
	trunc(@bytes);
	total = 0;
}
