# The one-liners that tutorials begin with, on the kernel guest.

NAME who allocates how much
RUN trapline dtrace -n 'fbt::malloc:entry /pid != $pid/ { printf("%s %d", execname, arg0); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|CPU     ID                    FUNCTION:NAME
|{{...}}
|  0 {{ *\d+}}                     malloc:entry sh 1024
|{{...}}
|  0 {{ *\d+}}                     malloc:entry cat {{\d+}}
|{{...}}
|
STDERR
|dtrace: description 'fbt::malloc:entry ' matched 1 probe

NAME results of reads as a distribution
RUN trapline dtrace -qn 'fbt::sys_read:return /execname == "cat"/ { @[execname] = quantize(arg1); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|
|  cat                                              {{ }}
|           value  ------------- Distribution ------------- count   {{ }}
|              -1 |                                         0       {{ }}
|               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2       {{ }}
|               1 |                                         0       {{ }}
|
STDERR

NAME calls of a few functions counted
RUN trapline dtrace -n 'fbt::sys_getpid:entry, fbt::sys_fork:entry { @[probefunc] = count(); }' -c getpid
EXPECT
|getpid: 1000 calls
|
|  sys_fork{{ +}}1
|  sys_getpid{{ +}}1000
STDERR
|dtrace: description 'fbt::sys_getpid:entry, fbt::sys_fork:entry ' matched 2 probes

NAME sizes of allocations by program
RUN trapline dtrace -qn 'fbt::malloc:entry /execname == "ls"/ { @["calls"] = count(); @b["bytes", arg0] = sum(arg0); }' -c 'ls /'
EXPECT
|bin
|boot
|dev
|etc
|lib
|libexec
|sbin
|usr
|
|  calls{{ +\d+}}
|  bytes{{ +(?:92 +92|48 +48)}}
|  bytes{{ +(?:98 +98|54 +54)}}
|  bytes{{ +1024 +\d+}}
STDERR

NAME time in a function by thread-local variable
RUN trapline dtrace -qn 'fbt::sys_read:entry { self->ts = timestamp; } fbt::sys_read:return /self->ts/ { @[execname] = max(timestamp - self->ts); self->ts = 0; }' -c 'cat /etc/motd | wc -l'
EXPECT
|       2
|
|  wc{{ +\d+}}
|  sh{{ +\d+}}
|  cat{{ +\d+}}
STDERR

NAME min, max and average of allocations of 64 bits
ISAS x86_64 aarch64 riscv64
RUN trapline dtrace -qn 'fbt::malloc:entry /execname == "cat"/ { @n = count(); @lo = min(arg0); @hi = max(arg0); @a = avg(arg0); } END { printa("%@d %@d %@d %@d\n", @n, @lo, @hi, @a); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|5 92 1024 466
|
STDERR

NAME min, max and average of allocations of 32 bits
ISAS i386
RUN trapline dtrace -qn 'fbt::malloc:entry /execname == "cat"/ { @n = count(); @lo = min(arg0); @hi = max(arg0); @a = avg(arg0); } END { printa("%@d %@d %@d %@d\n", @n, @lo, @hi, @a); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|5 48 1024 439
|
STDERR

NAME a stack or a symbol may be what a format begins with
RUN trapline dtrace -qn 'fbt::sys_read:entry { printf("<%k>", stack(2)); printf("%a %d\n", sym(caller), 3); exit(0); }'
EXPECT
|<
|kernel`{{\S+}}
|kernel`{{\S+}}
|>kernel`{{\S+}} 3
|

NAME time on the CPU is not the time that passes
RUN trapline dtrace -qn 'syscall::nanosleep:entry { self->ts = timestamp; self->vts = vtimestamp; } syscall::nanosleep:return { printf("%s %s\n", timestamp - self->ts > 10000000 ? "slept" : "woke", vtimestamp - self->vts < 1000000 ? "off the CPU" : "on it"); exit(0); }' -c 'sleep 0.01'
EXPECT
|slept off the CPU
|

NAME a call that does not come back is its caller's
# Where there is padding behind it: on the others the next function begins at once, and the address is its first.
ISAS x86_64
RUN trapline dtrace -qn 'fbt::exit1:entry /execname == "true"/ { stack(); exit(0); }' -c 'true'
EXPECT
|
|              kernel`sys_exit+{{0x\w+}}
|{{...}}
|
