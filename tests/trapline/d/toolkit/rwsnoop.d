#!/usr/sbin/dtrace -Cs
/* rwsnoop.d - each read with its size: the preprocessor makes the columns. */
#pragma D option quiet
#define COLUMNS	"%5s %5s %-8s %1s %7s\n"
#define ROW	"%5d %5d %-8s %1s %7d\n"

BEGIN { printf(COLUMNS, "UID", "PID", "CMD", "D", "BYTES"); }

fbt::sys_read:entry { self->dir = "R"; }

fbt::sys_read:return
/self->dir != NULL/
{
	printf(ROW, uid, pid, execname, self->dir, (int)arg1);
	self->dir = 0;
}
