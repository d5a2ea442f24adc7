#!/usr/sbin/dtrace -s
/* percall.d - count, shortest, mean, longest and spread of reads. */
#pragma D option quiet

fbt::sys_read:entry { self->start = timestamp; self->vstart = vtimestamp; }

fbt::sys_read:return
/self->start/
{
	this->elapsed = timestamp - self->start;
	this->oncpu = vtimestamp - self->vstart;
	@n[execname] = count();
	@min[execname] = min(this->elapsed);
	@avg[execname] = avg(this->elapsed);
	@max[execname] = max(this->elapsed);
	@dev[execname] = stddev(this->elapsed);
	@cpu[execname] = sum(this->oncpu);
	self->start = 0;
	self->vstart = 0;
}

END
{
	printf("%-8s %6s %9s %9s %9s %9s %9s\n", "PROGRAM", "CALLS", "MIN", "AVG", "MAX", "STDDEV", "CPU");
	printa("%-8s %@6d %@9d %@9d %@9d %@9d %@9d\n", @n, @min, @avg, @max, @dev, @cpu);
}
