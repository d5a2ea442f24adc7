# The columns of dtrace(1): CPU, ID, FUNCTION:NAME, and what the actions trace.

NAME a probe that fires prints its line
PROG fbt::sys_getpid:entry { exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                 sys_getpid:entry{{ }}
|
STDERR
|dtrace: description 'fbt::sys_getpid:entry ' matched 1 probe

NAME the columns of malloc
PROG fbt::malloc:entry { trace(execname); trace(arg0); exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                     malloc:entry   init                                          1024
|
STDERR
|dtrace: description 'fbt::malloc:entry ' matched 1 probe

NAME numbers by their width
PROG BEGIN { trace((char)1); trace((short)-2); trace(-3); trace(-4ll); exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN    1 65534       -3               -4
|

NAME what a probe is called
PROG BEGIN { printf("%s %s %s %s %d %d %d", probeprov, probemod, probefunc, probename, cpu, id, epid); exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN dtrace   BEGIN 0 1 1
|
STDERR
|dtrace: description 'BEGIN ' matched 1 probe

NAME a kernel stack
PROG fbt::sys_read:entry /execname == "cat"/ { stack(); exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                   sys_read:entry{{ }}
|              kernel`syscallenter+0x{{[0-9a-f]+}}
|              kernel`{{.*}}
|{{...}}
|
|

NAME the caller
PROG fbt::sys_read:entry { printf("%a", caller); exit(0); }
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                   sys_read:entry kernel`syscallenter+0x{{[0-9a-f]+}}
|

NAME quiet prints what is traced and nothing else
RUN trapline dtrace -qn 'BEGIN { printf("%s\n", "hello"); exit(0); }'
EXPECT
|hello
|
STDERR

NAME the status of exit is that of the command
RUN trapline dtrace -qn 'BEGIN { exit(3); }'
EXPECT
|
STDERR
EXIT 3

NAME functions indented by their calls
RUN trapline dtrace -F -n 'fbt::sys_getpid:entry { exit(0); }' -n 'fbt::sys_getpid:return'
EXPECT
|CPU FUNCTION                                {{ }}
|  0  -> sys_getpid                           {{ }}
|

NAME calls within calls
RUN trapline dtrace -F -n 'fbt::sys_read:entry /execname == "cat"/ { self->on = 1; } fbt::sys_read: /self->on/ { } fbt::dofileread: /self->on/ { } fbt::sys_read:return /self->on/ { exit(0); }'
EXPECT
|CPU FUNCTION                                {{ }}
|  0  -> sys_read                             {{ }}
|  0    -> dofileread                         {{ }}
|  0    <- dofileread                         {{ }}
|  0   | sys_read:return                      {{ }}
|  0  <- sys_read                             {{ }}
|

NAME samples by the count of instructions
RUN trapline dtrace -qn 'cpc:::PAPI_tot_ins-all-100000 /execname == "spin"/ { @[arg0 ? "kernel" : "program", arg2] = count(); }' -c 'spin 500'
EXPECT
|{{...}}
|  program                                                           0 {{ *\d+}}
