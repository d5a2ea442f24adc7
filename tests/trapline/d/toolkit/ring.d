#!/usr/sbin/dtrace -s
/* ring.d - the last events before the end: a flight recorder. */
#pragma D option bufpolicy=ring
#pragma D option bufsize=256

fbt:::entry
{
	trace(timestamp);
}
