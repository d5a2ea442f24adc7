# The sessions of the articles on ftrace's uprobes and on USDT with ftrace, on a program of ours: the same commands, the same lines.
# Where they probe bash's readline or a server's dispatch_command, fib and greet of testbins/linux stand in; where node's
# http__client__request, the marker of that name there.

NAME functions of a program are listed
RUN trapline uprobe -l $ZOO
EXPECT
|{{...}}
|greet
|{{...}}
|is_even
|is_odd
|{{...}}

NAME a function is traced by its name
RUN trapline uprobe p:zoo:factorial -c '$ZOO recursion'
EXPECT
|Tracing uprobe factorial (p:factorial {{.*}}/zoo:0x{{\w+}}). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: factorial: (0x{{\w+}})
|{{...}}
|
|Ending tracing...

NAME a return is told with where it goes and what it returns
RUN trapline uprobe 'r:zoo:factorial +0($stack):u64 $retval:u32' 'arg2 == 3628800' -c '$ZOO recursion'
EXPECT
|Tracing uprobe factorial (r:factorial {{.*}}/zoo:0x{{\w+}} +0($stack):u64 $retval:u32). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: factorial: (0x{{\w+}} <- 0x{{\w+}}) arg1={{\d+}} arg2=3628800
|{{...}}

NAME an argument that is a string, under a name of its own
ISAS x86_64
RUN trapline uprobe 'p:cmd $ZOO:greet +0(%di):string' 'arg1 ~ "wor*"' -c '$ZOO args'
EXPECT
|Tracing uprobe cmd (p:cmd {{.*}}/zoo:0x{{\w+}} +0(%di):string). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: cmd: (0x{{\w+}}) arg1="world"
|{{...}}

NAME an argument that is a string, under a name of its own, on AArch64
ISAS aarch64
RUN trapline uprobe 'p:cmd $ZOO:greet name=+0(%x0):string' 'name ~ "wor*"' -c '$ZOO args'
EXPECT
|Tracing uprobe cmd (p:cmd {{.*}}/zoo:0x{{\w+}} name=+0(%x0):string). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: cmd: (0x{{\w+}}) name="world"
|{{...}}

NAME an argument that is a string, under a name of its own, on RISC-V
ISAS riscv64
RUN trapline uprobe 'p:cmd $ZOO:greet name=+0(%a0):string' 'name ~ "wor*"' -c '$ZOO args'
EXPECT
|Tracing uprobe cmd (p:cmd {{.*}}/zoo:0x{{\w+}} name=+0(%a0):string). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: cmd: (0x{{\w+}}) name="world"
|{{...}}

NAME an argument that is a string, under a name of its own, on i386
ISAS i386
RUN trapline uprobe 'p:cmd $ZOO:greet name=+0($stack1):string' 'name ~ "wor*"' -c '$ZOO args'
EXPECT
|Tracing uprobe cmd (p:cmd {{.*}}/zoo:0x{{\w+}} name=+0($stack1):string). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: cmd: (0x{{\w+}}) name="world"
|{{...}}

NAME for a time, in the buffer, and then all at once
RUN trapline uprobe -d 1 'r:zoo:fib $retval:s32' 'arg1 == 55' -c '$ZOO recursion'
EXPECT
|Tracing uprobe fib for 1 seconds (buffered)...
|fib(10) = 55
|{{...}}
|factorial(10) = 3628800
|             zoo-100     [000] d....     0.{{\d+}}: fib: (0x{{\w+}} <- 0x{{\w+}}) arg1=55
|
|Ending tracing...

NAME with the headings of the trace file
RUN trapline uprobe -H 'r:zoo:fib $retval:s32' 'arg1 == 55' -c '$ZOO recursion'
EXPECT
|{{...}}
|# tracer: nop
|#
|# entries-in-buffer/entries-written: 1/1   #P:1
|#
|#                                _-----=> irqs-off/BH-disabled
|#                               / _----=> need-resched
|#                              | / _---=> hardirq/softirq
|#                              || / _--=> preempt-depth
|#                              ||| / _-=> migrate-disable
|#                              |||| /     delay
|#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
|#              | |         |   |||||     |         |
|             zoo-100     [000] d....     0.{{\d+}}: fib: (0x{{\w+}} <- 0x{{\w+}}) arg1=55
|
|Ending tracing...

NAME with the user's stack
RUN trapline uprobe -s p:zoo:fib -c '$ZOO recursion'
EXPECT
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: fib: (0x{{\w+}})
|             zoo-100     [000] d....     0.{{\d+}}: <user stack trace>
| =>  <{{\w+}}>
|{{...}}

NAME the format of the event
RUN trapline uprobe -v 'r:zoo:fib $retval:s32 comm=$comm words=+0($stack):x16[2]' -c '$ZOO recursion'
EXPECT
|name: fib
|ID: 1
|format:
|	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
|	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
|	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
|	field:int common_pid;	offset:4;	size:4;	signed:1;
|
|	field:unsigned long __probe_func;	offset:8;	size:8;	signed:0;
|	field:unsigned long __probe_ret_ip;	offset:16;	size:8;	signed:0;
|	field:s32 arg1;	offset:24;	size:4;	signed:1;
|	field:__data_loc char[] comm;	offset:28;	size:4;	signed:1;
|	field:x16 words[2];	offset:32;	size:4;	signed:0;
|
|print fmt: "(%lx <- %lx) arg1=%d comm=\"%s\" words={0x%x,0x%x}", REC->__probe_func, REC->__probe_ret_ip, REC->arg1, __get_str(comm), REC->words[0], REC->words[1]

NAME a symbol that the program does not have
RUN trapline uprobe p:zoo:nosuch -c '$ZOO recursion'
EXIT 1
STDERR
|Error: {{.*}}/zoo: no symbol 'nosuch'

NAME a name that is neither program nor library
RUN trapline uprobe p:nosuch:main -c '$ZOO recursion'
EXIT 1
STDERR
|Error: nosuch: neither a program nor a library of the guest; give its path

NAME an offset in the middle of an instruction
ISAS aarch64
RUN trapline uprobe 'p:bad $ZOO:0x8001' -c '$ZOO recursion'
EXIT 1
STDERR
|Error: bad: {{.*}}/zoo:0x8001: it is inside an instruction of {{\w+}} (-F probes it anyway)

NAME an offset in the middle of an instruction is the kernel's to refuse when it is forced
ISAS aarch64
RUN trapline uprobe -F 'p:bad $ZOO:0x8001' -c '$ZOO recursion'
EXIT 1
STDERR
|Error: {{.*}}/zoo: enabling bad: error 22, {{.*}}

NAME a marker that is there for the taking
RUN trapline usdt zoo:none -c '$ZOO markers'
EXPECT
|Tracing uprobe zoo_none (p:zoo_none {{.*}}/zoo:0x{{\w+}}). Ctrl-C to end.
|             zoo-100     [000] d....     0.{{\d+}}: zoo_none: (0x{{\w+}})
|{{...}}

NAME the semaphore of a marker is set by itself
RUN trapline usdt zoo:http__client__request -c '$ZOO markers'
EXPECT
|Tracing uprobe zoo_http__client__request (p:zoo_http__client__request {{.*}}/zoo:0x{{\w+}}(0x{{\w+}}) {{.*}}). Ctrl-C to end.
|none: 1 time
|{{...}}
|  somebody listens
|             zoo-100     [000] d....     0.{{\d+}}: zoo_http__client__request: {{.*}}
|{{...}}
|
|Ending tracing...

NAME a string behind a pointer of the argument, with the semaphore set
ISAS x86_64
RUN trapline usdt -i 'zoo:http__client__request +0(+8(%bx)):string' -c '$ZOO markers'
EXPECT
|Tracing uprobe zoo_http__client__request (p:zoo_http__client__request {{.*}}/zoo:0x{{\w+}}(0x{{\w+}}) +0(+8(%bx)):string). Ctrl-C to end.
|{{...}}
|  somebody listens
|             zoo-100     [000] d....     0.{{\d+}}: zoo_http__client__request: (0x{{\w+}}) arg1="/index.html"
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: zoo_http__client__request: (0x{{\w+}}) arg1="/animals/lion"
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: zoo_http__client__request: (0x{{\w+}}) arg1="/animals/bear?hungry=yes"
|{{...}}

NAME markers with their places and arguments
RUN trapline usdt -L $ZOO
EXPECT
|{{...}}
|zoo:http__client__request
|    location 0x{{\w+}}  offset 0x{{\w+}}  semaphore 0x{{\w+}}
|    arg1: {{\d}}@{{.*}} unsigned {{\d\d}} bits   {{.*}}
|    arg2: -{{\d}}@{{.*}} signed {{\d\d}} bits     {{.*}}
|{{...}}

NAME an unknown marker
RUN trapline usdt zoo:nosuch -c '$ZOO markers'
EXIT 1
STDERR
|Error: {{.*}}/zoo: no marker zoo:nosuch (did you mean 'zoo:none'?)

NAME an offset in the data has no instruction
RUN trapline uprobe 'p:bad $ZOO:0xdffff' -c '$ZOO recursion'
EXIT 1
STDERR
|Error: bad: {{.*}}/zoo:0xdffff: {{.*}} (-F probes it anyway)

NAME a script is no program
FILE script
|#!/bin/sh
|echo hello
RUN trapline uprobe p:zoo:fib -c ./script
EXIT 1
STDERR
|Error: {{.*}}/script: {{.*}}
