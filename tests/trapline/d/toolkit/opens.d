#!/usr/sbin/dtrace -s
/* opens.d - paths as they are looked up, with what came of it. Uses namei(). */
#pragma D option quiet

inline int OPT_failed = $1;

dtrace:::BEGIN
{
	printf("%5s %5s %-8s %3s %3s %s\n", "UID", "PID", "COMM", "RET", "ERR", "PATH");
}

fbt::namei:entry
{
	self->pathp = arg0;
	self->ok = 1;
}

fbt::namei:return
/self->ok && (!OPT_failed || arg1 != 0)/
{
	printf("%5d %5d %-8s %3d %3d %s\n", uid, pid, execname, arg1, errno, copyinstr(self->pathp));
	self->pathp = 0;
	self->ok = 0;
}
