#!/usr/sbin/dtrace -s
/* delta.d - microseconds since the last event of any thread. */
#pragma D option quiet
#pragma D option defaultargs

BEGIN { last = timestamp; limit = $1 ? $1 : 8; }

fbt:::entry
{
	this->delta = (timestamp - last) / 1000;
	printf("%8d us %-10s %s:%s\n", this->delta, execname, probefunc, probename);
	last = timestamp;
	limit--;
}

fbt:::entry
/limit == 0/
{
	exit(0);
}
