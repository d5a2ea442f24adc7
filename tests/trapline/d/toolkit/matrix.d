#!/usr/sbin/dtrace -s
/* matrix.d - two keys, sorted by key, packed distributions. */
#pragma D option quiet
#pragma D option aggsortkey
#pragma D option aggsortkeypos=1

fbt:::entry { @[execname, probefunc] = count(); }
fbt::malloc:entry { @sizes[execname] = quantize(arg0); }
END { printa("%-4s %-12s %@3d\n", @); setopt("aggpack"); printa(@sizes); }
