#!/usr/sbin/dtrace -s
/* whocalls.d - by which ways a function is reached. */
fbt::$1:entry
/execname == "cat"/
{
	@[stack(3)] = count();
	@user[ustack(2)] = count();
}
