#!/usr/sbin/dtrace -s
/* bits.d - flags taken apart: bit-fields, masks, shifts, enums. */
#pragma D option quiet

BEGIN
{
	this->v = curthread->td_proc->p_textvp;
	this->flags = 0x2d;
	printf("%s%s%s %#x\n", this->flags & 1 ? "READ " : "", this->flags & 2 ? "WRITE " : "",
	    this->flags >> 3 & 1 ? "APPEND" : "-", this->flags & ~1);
	printf("%d %u\n", (int8_t)0xf0 >> 2, (uint8_t)0xf0 >> 2);
	exit(0);
}
