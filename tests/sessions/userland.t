# Programs of the kernel guest: the pid provider in them.

NAME every function of libc that ls calls
RUN trapline dtrace -n 'pid$target:libc.so.7::entry { @[probefunc] = count(); }' -c 'ls /etc'
EXPECT
|motd
|rc
|
|  _exit                                                             1
|  close                                                             1
|  exit                                                              1
|  fflush                                                            1
|  fstatat                                                           1
|  memmove                                                           1
|  open                                                              1
|  qsort                                                             1
|  realloc                                                           1
|  sbrk                                                              1
|  stat                                                              1
|  strcmp                                                            1
|  write                                                             1
|  __break                                                           2
|  fputs                                                             2
|  getdirentries                                                     2
|  kvprintf                                                          2
|  puts                                                              2
|  snprintf                                                          2
|  strdup                                                            2
|  strlen                                                            2
|  vsnprintf                                                         2
|  malloc                                                            3
|  free                                                              5
|  memcpy                                                            5
|  putchar                                                           8
|  snprintf_func                                                    16
STDERR
|dtrace: description 'pid$target:libc.so.7::entry ' matched {{\d+}} probes
|dtrace: pid 5 has exited

NAME and by its path, which is the guest's
RUN trapline dtrace --guest kernel -n 'pid$target:libc.so.7::entry { @[probefunc] = count(); }' -c /bin/ls
EXPECT
|bin
|{{...}}
|usr
|
|  _exit                                                             1
|{{...}}
|  malloc{{ +\d+}}
|{{...}}
STDERR
|dtrace: description 'pid$target:libc.so.7::entry ' matched {{\d+}} probes
|dtrace: pid 5 has exited

NAME a function is bound at the first call from each object that calls it
RUN trapline dtrace -qn 'pid$target:ld-elf.so.1:_rtld_bind:return { @["bound", usym(arg1)] = count(); } pid$target:libc.so.7:puts:entry,pid$target:libc.so.7:free:entry { @["called", usym(uregs[R_PC])] = count(); }' -c 'ls /etc'
EXPECT
|motd
|rc
|
|{{...}}
|  bound{{ +}}libc.so.7`puts{{ +}}1
|{{...}}
|  bound{{ +}}libc.so.7`free{{ +}}2
|  called{{ +}}libc.so.7`puts{{ +}}2
|  called{{ +}}libc.so.7`free{{ +}}5

NAME arguments and the stack of a function of a shared library
RUN trapline dtrace -qn 'pid$target:libc.so.7:write:entry { printf("%s", copyinstr(arg1, arg2)); ustack(2); exit(0); }' -c 'ls /etc'
EXPECT
|motd
|rc
|
|              libc.so.7`write
|              libc.so.7`fflush+{{.*}}
|{{...}}

NAME what a function of the program returns
RUN trapline dtrace -qn 'pid$target::main:return { printf("%s returns %d\n", execname, arg1); }' -c 'false'
EXPECT
|false returns 1
|

NAME init as the target
# Of __fork: fork ends in a jump there, where its own return probe finds what the call before has left.
RUN trapline dtrace -qn 'pid$target:a.out:__fork:return { printf("%d\n", arg1); }' -p 1
EXPECT
|4
|

NAME a process that never comes
RUN trapline dtrace -n BEGIN -p 777
STDERR
|dtrace: failed to grab process 777: the guest never has a process of that number
EXIT 1

NAME a command that starts no program
RUN trapline dtrace -n 'pid$target::main:entry' -c 'cd /'
STDERR
|dtrace: -c 'cd /': the guest's shell ran no program for it
EXIT 1

NAME a program that is neither here nor in the guest
RUN trapline dtrace -n BEGIN -c './nosuch | cat'
STDERR
|dtrace: -c './nosuch | cat': no such program, here or in the guest (-c 'ls /bin' lists the guest's)
EXIT 1

NAME a program of the guest by its path, and what the shell makes of the rest
RUN trapline dtrace --guest kernel -qn 'BEGIN { exit(0); }' -c '/bin/echo;/bin/ls'
EXPECT
|
STDERR

NAME an unknown function
RUN trapline dtrace -n 'pid$target:libc.so.7:nosuch:entry' -c 'ls'
STDERR
|dtrace: invalid probe specifier pid$target:libc.so.7:nosuch:entry: {{.*}}failed to lookup 'nosuch' in module 'libc.so.7'
EXIT 1

NAME probes that a program has told of, and one that it makes ready for a listener only
RUN trapline dtrace -qn 'myprov$target:::query-start { printf("%d: %s\n", arg1, copyinstr(arg0)); } myprov$target:::query-plan { printf("   %s\n", copyinstr(arg0)); } myprov$target::query:query-done { @[args[0]] = sum(args[1]); }' -c 'query 3'
EXPECT
|query: 3 queries, 13 rows
|0: select name from animals
|   scan animals
|1: select * from cages
|   scan cages
|2: select food from stores
|   scan stores
|
|        0                3
|        2                4
|        1                6
STDERR

NAME a provider of every process that has it
RUN trapline dtrace -Zn 'myprov*:::query-start { @[execname, probemod, probefunc] = count(); }' -c 'query 2; query 1'
STDERR
|dtrace: description 'myprov*:::query-start ' matched 0 probes
EXPECT
|query: 2 queries, 9 rows
|query: 1 queries, 3 rows
|
|  query                                               query                                               query                                                             3
