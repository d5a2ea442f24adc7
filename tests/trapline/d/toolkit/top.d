#!/usr/sbin/dtrace -s
/* top.d - the busiest functions first, the rest left out. */
#pragma D option quiet
#pragma D option aggsortrev

fbt:::entry { @[probefunc] = count(); }
END { trunc(@, 2); printf("TOP TWO\n"); printa("%5@d %s\n", @); }
