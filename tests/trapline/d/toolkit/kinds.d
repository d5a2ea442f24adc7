#!/usr/sbin/dtrace -s
/* kinds.d - one clause for several probes; what differs is asked inside. */
#pragma D option quiet

fbt::sys_read:entry,
fbt::malloc:entry,
fbt::namei:entry
{
	this->kind = probefunc == "malloc" ? "memory" : probefunc == "namei" ? "names" : "files";
	@[this->kind, probename] = count();
	@total["all", probename] = count();
}

END { printa(@); printa(@total); }
