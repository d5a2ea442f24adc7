#!/usr/sbin/dtrace -s
/* latency.d - how long a function takes, as a distribution for each program. */

fbt::$1:entry
{
	self->ts = timestamp;
}

fbt::$1:return
/self->ts/
{
	@[execname, probefunc] = quantize((timestamp - self->ts) / 1000);
	self->ts = 0;
}
