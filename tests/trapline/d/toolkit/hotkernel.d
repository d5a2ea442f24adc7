#!/usr/sbin/dtrace -s
/* hotkernel.d - which kernel functions are on the CPU, by sampling. */
#pragma D option quiet

profile:::profile-4999
/arg0/
{
	@pc[func(arg0)] = count();
	@mod[mod(arg0)] = count();
}

dtrace:::END
{
	printf("%-30s %8s\n", "FUNCTION", "COUNT");
	printa("%-30a %@8d\n", @pc);
	printa("%-30a %@8d\n", @mod);
}
