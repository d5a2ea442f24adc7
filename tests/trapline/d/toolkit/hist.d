#!/usr/sbin/dtrace -s
/* hist.d - bars across programs rather than within one. */
#pragma D option agghist
#pragma D option quiet

fbt::sys_read:return { @bytes[execname] = sum(arg1); }
END { printa(@bytes); }
