# Listing probes, and the ways to name them.

NAME the probes of a function
RUN trapline dtrace -l -f sys_read
EXPECT
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|{{ *\d+}}        fbt            kernel                          sys_read entry
|{{ *\d+}}        fbt            kernel                          sys_read return
STDERR

NAME the dtrace provider comes first
RUN trapline dtrace -l -P dtrace
EXPECT
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|    1     dtrace                                                     BEGIN
|    2     dtrace                                                     END
|    3     dtrace                                                     ERROR
STDERR

NAME a glob in a description
RUN trapline dtrace -l -n 'fbt::sys_get[pe]*id:entry'
EXPECT
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|{{...}}
|{{ *\d+}}        fbt            kernel                        sys_getpid entry
|{{...}}
STDERR

NAME a module, a function and a provider by their flags
RUN trapline dtrace -q -m fbt:kernel'{ @["m"] = count(); }' -f kernel:sys_getpid'{ @["f"] = count(); }' -P dtrace -c getpid
EXPECT
|getpid: 1000 calls
|
|  f{{ +}}2000
|  m{{ +\d+}}
STDERR

NAME a probe by its id
RUN trapline dtrace -i 1'{ trace("first"); exit(0); }'
EXPECT
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   first{{ +}}
|
STDERR
|dtrace: description '1' matched 1 probe

NAME nothing matches
RUN trapline dtrace -n nosuch:::entry
STDERR
|dtrace: invalid probe specifier nosuch:::entry: probe description nosuch:::entry does not match any probes
EXIT 1

NAME nothing need match
RUN trapline dtrace -Z -n nosuch:::entry -c true
EXPECT
|
STDERR
|dtrace: description 'nosuch:::entry' matched 0 probes
