#!/usr/sbin/dtrace -s
/* depth.d - nesting counted per thread, drawn by hand. */
#pragma D option quiet

self int depth;

fbt:::entry
/execname == "sh"/
{
	printf("%*s-> %s\n", self->depth, "", probefunc);
	self->depth += 2;
}

fbt:::return
/execname == "sh" && self->depth/
{
	self->depth -= 2;
	printf("%*s<- %s\n", self->depth, "", probefunc);
}
