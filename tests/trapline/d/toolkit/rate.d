#!/usr/sbin/dtrace -s
/* rate.d - events a millisecond, by normalisation. */
#pragma D option quiet

BEGIN { start = timestamp; }

fbt:::entry { @[probefunc] = count(); }

END
{
	this->ms = (timestamp - start) / 1000000;
	printf("in %d ms\n", this->ms);
	printa("%-12s %@8d times\n", @);
	normalize(@, this->ms ? this->ms : 1);
	printa("%-12s %@8d a ms\n", @);
	denormalize(@);
	clear(@);
	printa("%-12s %@8d cleared\n", @);
}
