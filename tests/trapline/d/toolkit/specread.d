#!/usr/sbin/dtrace -s
/* specread.d - everything a read did, but only of reads that fail to fill their buffer. */
#pragma D option quiet
#pragma D option nspec=4

fbt::sys_read:entry
{
	self->spec = speculation();
}

fbt::sys_read:entry,
fbt::malloc:entry,
fbt::malloc:return
/self->spec/
{
	speculate(self->spec);
	printf("%s %s:%s\n", execname, probefunc, probename);
}

fbt::sys_read:return
/self->spec && arg1 == 0/
{
	commit(self->spec);
	self->spec = 0;
}

fbt::sys_read:return
/self->spec/
{
	discard(self->spec);
	self->spec = 0;
}
