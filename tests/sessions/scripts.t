# Scripts, their arguments, output files and errors.

NAME a script with arguments
RUN trapline dtrace -s sizes.d sh 4096
FILE sizes.d
|#!/usr/sbin/dtrace -s
|#pragma D option quiet
|
|int total;
|
|BEGIN { printf("%s over %d\n", $$1, $2); }
|fbt::malloc:entry /execname == $$1/ { total += arg0; }
|fbt::malloc:entry /execname == $$1 && arg0 > $2/ { @big[arg0] = count(); }
|END { printf("%s\n", total > 4096 ? "much" : "little"); printa(@big); }
EXPECT
|sh over 4096
|much
|
|            16384{{ +\d+}}
|
STDERR

NAME an argument that is missing
RUN trapline dtrace -s one.d
FILE one.d
|BEGIN
|{
|	trace($1);
|}
STDERR
|dtrace: failed to compile script one.d: line 3: macro argument $1 is not defined: no arguments given (option defaultargs allows that)
EXIT 1

NAME an error by its line and tag
RUN trapline dtrace -x errtags -s two.d
FILE two.d
|BEGIN
|{
|	trace(nosuch);
|}
STDERR
|dtrace: failed to compile script two.d: [D_IDENT_UNDEF] line 3: failed to resolve nosuch: unknown variable name
EXIT 1

NAME a script that does not exist
RUN trapline dtrace -s nosuch.d
STDERR
|dtrace: failed to open nosuch.d: No such file or directory
EXIT 1

NAME a syntax error on the command line
RUN trapline dtrace -x errtags -n 'BEGIN { trace(1 }'
STDERR
|dtrace: invalid probe specifier BEGIN { trace(1 }: [D_SYNTAX] in action list: the '(' of line 1 is not closed: syntax error near "}"
EXIT 1

NAME a fault in a probe is reported, and tracing continues
RUN trapline dtrace -qn 'BEGIN { trace(*(int *)8); } BEGIN { printf("still here\n"); exit(0); }'
EXPECT
|still here
|
STDERR
|{{dtrace: error on enabled probe ID 1 \(ID 1: dtrace:::BEGIN\): invalid address \(0x8\) in action #1 at DIF offset (16|4)}}

NAME a division by zero
RUN trapline dtrace -qn 'int zero; BEGIN { trace(1 / zero); } END { printf("end\n"); }' -c true
EXPECT
|end
|
STDERR
|dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #1 at DIF offset 8

NAME an option that does not exist
RUN trapline dtrace -x nosuch -n BEGIN
STDERR
|dtrace: failed to set -x nosuch: Invalid option name
EXIT 1

NAME a guest that never ends is stopped by its time
RUN trapline dtrace -x timeout=50ms -qn 'END { printf("over\n"); }' -c 'spin 100000000'
EXPECT
|over
|
STDERR
|dtrace: stopped after 0.05 s of the guest's time (-x timeout): a command has not ended

NAME a command of the host, when that is allowed
RUN trapline dtrace -w -qn 'BEGIN { printf("before\n"); system("echo %s %d", "from system", 42); printf("after\n"); exit(0); }'
EXPECT
|before
|from system 42
|after
|
STDERR

NAME output to a file and back
RUN trapline dtrace -w -qn 'BEGIN { freopen("out.txt"); printf("hidden\n"); freopen(""); printf("shown\n"); exit(0); }'
EXPECT
|shown
|
STDERR

NAME a destructive action that is not allowed
RUN trapline dtrace -qn 'BEGIN { system("true"); }'
STDERR
|dtrace: could not enable tracing: Destructive actions not allowed
EXIT 1

NAME branches
RUN trapline dtrace -qn 'fbt::malloc:entry { if (arg0 > 1000) { @["big"] = count(); } else if (execname == "sh") @["small, of the shell"] = count(); else @["small"] = count(); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|
|  small, of the shell{{ +\d+}}
|  small{{ +\d+}}
|  big{{ +\d+}}
STDERR
