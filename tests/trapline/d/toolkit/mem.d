#!/usr/sbin/dtrace -s
/* mem.d - memory of the process and of the kernel, as bytes and as structures. */
fbt::sys_read:entry
{
	tracemem(arg1, 24);
	this->copy = (char *)copyin((uintptr_t)args[1]->buf, 12);
	this->copy[5] = 0;
	trace(stringof(this->copy));
	print(*args[1]);
	exit(0);
}
