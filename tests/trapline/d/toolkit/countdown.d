#!/usr/sbin/dtrace -s
/* countdown.d - counts down in milliseconds, then ends with a status. */
#pragma D option quiet

dtrace:::BEGIN
{
	i = 3;
}

profile:::tick-500us
/i > 0/
{
	printf("%d...", i--);
}

profile:::tick-500us
/i == 0/
{
	printf("blastoff!\n");
	exit(7);
}
