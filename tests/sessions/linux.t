# Linux programs: the pid provider and USDT as dtrace(1) shows them, uprobes as perf-tools' `uprobe` does.

NAME function calls of a program are counted by name
RUN trapline dtrace -n 'pid$target::fib:entry, pid$target::ackermann:entry { @[probemod, probefunc] = count(); }' -c '$ZOO recursion'
EXPECT
|fib(10) = 55
|{{...}}
|
|  zoo                                                 ackermann                                                        44
|  zoo                                                 fib                                                             177
STDERR
|dtrace: description 'pid$target::fib:entry, pid$target::ackermann:entry ' matched 2 probes
|dtrace: pid 100 has exited

NAME a return probe has the offset of the return and the result
RUN trapline dtrace -qn 'pid$target::factorial:return /arg1 > 1000000/ { printf("%d %s\n", arg1, arg0 > 0 ? "offset" : "no offset"); }' -c '$ZOO recursion'
EXPECT
|{{...}}
|3628800 offset
|

NAME every instruction of a function is a probe of its own
ISAS x86_64 aarch64
RUN trapline dtrace -qn 'pid$target:a.out:arg2: { @[probename == "0" ? "first" : probename == "entry" ? "entry" : probename == "return" ? "return" : "other"] = count(); }' -c '$ZOO args'
EXPECT
|arg0 1000
|{{...}}
|  entry                                                             9
|  first                                                             9
|  other                                                             9
|  return                                                            9

NAME every instruction of a function is a probe of its own, where it takes more of them
ISAS riscv64 i386
RUN trapline dtrace -qn 'pid$target:a.out:arg2: { @[probename == "0" ? "first" : probename == "entry" ? "entry" : probename == "return" ? "return" : "other"] = count(); }' -c '$ZOO args'
EXPECT
|arg0 1000
|{{...}}
|  entry                                                             9
|  first                                                             9
|  return                                                            9
|  other                                                            {{(?:54|63)}}

NAME a marker with a semaphore fires while it is traced
RUN trapline dtrace -qn 'zoo$target:::http-client-request { printf("request %d\n", arg1); }' -c '$ZOO markers'
EXPECT
|{{...}}
|  somebody listens
|{{...}}
|request 1
|request 2
|request 3
|

NAME arguments of a marker come from registers, constants and memory
RUN trapline dtrace -qn 'zoo$target:::args7 { printf("%d %d %d %d %d %d %d\n", arg0, arg1, arg2, arg3, arg4, arg5, arg6); }' -c '$ZOO markers'
EXPECT
|{{...}}
|1 2 3 4 5 6 7
|

NAME the name of a pid probe must be entry, return or an offset
RUN trapline dtrace -n 'pid$target::fib:begin' -c '$ZOO recursion'
EXIT 1
STDERR
|dtrace: invalid probe specifier pid$target::fib:begin: 'begin' is an invalid probe name

NAME an offset must be one of an instruction
ISAS aarch64
RUN trapline dtrace -n 'pid$target::fib:2' -c '$ZOO recursion'
EXIT 1
STDERR
|dtrace: invalid probe specifier pid$target::fib:2: offset 0x2 is not aligned on an instruction

NAME an offset beyond the function is refused
RUN trapline dtrace -n 'pid$target::fib:fff0' -c '$ZOO recursion'
EXIT 1
STDERR
|dtrace: invalid probe specifier pid$target::fib:fff0: offset 0xfff0 outside of function 'fib'

NAME an unknown function is named
RUN trapline dtrace -n 'pid$target:a.out:nosuch:entry' -c '$ZOO recursion'
EXIT 1
STDERR
|dtrace: invalid probe specifier pid$target:a.out:nosuch:entry: failed to lookup 'nosuch' in module 'a.out'

NAME a uprobe shows a string argument
ISAS x86_64
RUN trapline uprobe 'p:zoo:greet +0(%di):string' -c '$ZOO args'
EXPECT
|Tracing uprobe greet (p:greet {{.*}}/zoo:0x{{\w+}} +0(%di):string). Ctrl-C to end.
|{{...}}
|             zoo-100     [000] d....     0.{{\d+}}: greet: (0x{{\w+}}) arg1="world"
|{{...}}
|
|Ending tracing...

NAME a return uprobe shows the result, filtered
RUN trapline uprobe 'r:zoo:fib $retval:s32' 'arg1 == 55' -c '$ZOO recursion'
EXPECT
|Tracing uprobe fib (r:fib {{.*}}/zoo:0x{{\w+}} $retval:s32). Ctrl-C to end.
|             zoo-100     [000] d....     0.{{\d+}}: fib: (0x{{\w+}} <- 0x{{\w+}}) arg1=55
|{{...}}

NAME an unknown register is shown at its column
RUN trapline uprobe 'p:zoo:fib %nosuch' -c '$ZOO recursion'
EXIT 1
STDERR
|Error: there is no such register (BAD_REG_NAME)
|  p:fib {{.*}}/zoo:0x{{\w+}} %nosuch
|  {{ *}}^

NAME markers of a file are listed
RUN trapline usdt --isa x86_64 -l $ZOO
ISAS x86_64
EXPECT
|libstdcxx:catch
|{{...}}
|zoo:types

NAME a marker is traced with its arguments, and its semaphore set
RUN trapline usdt -i zoo:http__client__request -c '$ZOO markers'
EXPECT
|Tracing uprobe zoo_http__client__request (p:zoo_http__client__request {{.*}}). Ctrl-C to end.
|{{...}}
|  somebody listens
|             zoo-100     [000] d....     0.{{\d+}}: zoo_http__client__request: (0x{{\w+}}) arg1={{\d+}} arg2=1
|{{...}}
