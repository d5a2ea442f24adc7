#!/usr/sbin/dtrace -s
/* flow.d - what is called while a program reads. */
#pragma D option flowindent

fbt::sys_read:entry
/execname == $$1/
{
	self->traceme = 1;
}

fbt:::
/self->traceme/
{
}

fbt::sys_read:return
/self->traceme/
{
	self->traceme = 0;
	exit(0);
}
