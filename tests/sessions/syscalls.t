# The syscall provider, with the one-liners everybody tries first.

NAME system calls by program and name
RUN trapline dtrace -n 'syscall:::entry { @[execname, probefunc] = count(); }' -c 'getpid 7'
EXPECT
|{{...}}
|  sh                                                  wait4                                                             1
|{{...}}
|  getpid                                              getpid                                                            7
STDERR
|dtrace: description 'syscall:::entry ' matched {{\d+}} probes
|{{...}}

NAME sizes of reads as a distribution
RUN trapline dtrace -qn 'syscall::read:return /execname == "dd"/ { @["bytes read"] = quantize(arg0); }' -c 'dd if=/dev/zero of=/dev/null bs=4096 count=5'
EXPECT
|{{...}}
|  bytes read                                        
|           value  ------------- Distribution ------------- count    
|            2048 |                                         0        
|            4096 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 5        
|            8192 |                                         0        
|

NAME files opened, with who opens them
RUN trapline dtrace -qn 'syscall::open:entry /execname == "cat"/ { printf("%s %s\n", execname, copyinstr(arg0)); }' -c 'cat /etc/motd'
EXPECT
|{{...}}
|cat /etc/motd
|{{...}}

NAME a call that fails says why
RUN trapline dtrace -qn 'syscall::open:return /errno == ENOENT/ { printf("%s: %d, errno %d\n", execname, (int)arg0, errno); }' -c 'cat /no/such/file'
EXPECT
|{{...}}
|cat: -1, errno 2
|{{...}}

NAME the one-liner of open as dtrace -S shows it
# With pointers of 32 bits the compiler cuts arg0 first.
ISAS x86_64 aarch64 riscv64
RUN trapline dtrace -S -e -n 'syscall::open:entry { printf("%s %s", execname, copyinstr(arg0)); }'
STDERR
|
|DIFO 0x1 returns string (unknown) by ref (size 256)
|OFF OPCODE      INSTRUCTION
|00: 29011801    ldgs DT_VAR(280), %r1		! DT_VAR(280) = "execname"
|01: 23000001    ret  %r1
|
|NAME             ID   KND SCP FLAG TYPE
|execname         118  scl glb r    string (unknown) by ref (size 256)
|
|DIFO 0x2 returns string (unknown) by ref (size 256)
|OFF OPCODE      INSTRUCTION
|00: 29010601    ldgs DT_VAR(262), %r1		! DT_VAR(262) = "arg0"
|01: 33000000    flushts
|02: 31000001    pushtv DT_TYPE(0), %r0, %r1		! DT_TYPE(0) = D type
|03: 2f000901    call DIF_SUBR(9), %r1		! copyinstr
|04: 23000001    ret  %r1
|
|NAME             ID   KND SCP FLAG TYPE
|arg0             106  scl glb r    D type (integer) (size 8)

NAME the one-liner of open as dtrace -S shows it for pointers of 32 bits
# The address is what the lower half of arg0 says.
ISAS i386
RUN trapline dtrace -S -e -n 'syscall::open:entry { printf("%s %s", execname, copyinstr(arg0)); }'
STDERR
|
|DIFO 0x1 returns string (unknown) by ref (size 256)
|OFF OPCODE      INSTRUCTION
|00: 29011801    ldgs DT_VAR(280), %r1		! DT_VAR(280) = "execname"
|01: 23000001    ret  %r1
|
|NAME             ID   KND SCP FLAG TYPE
|execname         118  scl glb r    string (unknown) by ref (size 256)
|
|DIFO 0x2 returns string (unknown) by ref (size 256)
|OFF OPCODE      INSTRUCTION
|00: 29010601    ldgs DT_VAR(262), %r1		! DT_VAR(262) = "arg0"
|01: 33000000    flushts
|02: 25000002    setx DT_INTEGER[0], %r2		! 0x20
|03: 04010201    sll  %r1, %r2, %r1
|04: 05010201    srl  %r1, %r2, %r1
|05: 31000001    pushtv DT_TYPE(0), %r0, %r1		! DT_TYPE(0) = D type
|06: 2f000901    call DIF_SUBR(9), %r1		! copyinstr
|07: 23000001    ret  %r1
|
|NAME             ID   KND SCP FLAG TYPE
|arg0             106  scl glb r    D type (integer) (size 8)

NAME a Linux program's system calls are those of module linux
RUN trapline dtrace -n 'syscall:linux:write*:entry { @[execname, probemod, probefunc] = count(); }' -c '$ZOO recursion'
EXPECT
|{{...}}
|  zoo                                                 linux                                               write{{v? +\d+}}
STDERR
|dtrace: description 'syscall:linux:write*:entry ' matched 2 probes
|dtrace: pid 100 has exited
