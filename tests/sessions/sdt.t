# SDT: the kernel's own probes, and what enabling one changes in it.

NAME the programs behind a page of the manual
RUN trapline dtrace -n 'proc:::exec-success { trace(curpsinfo->pr_psargs); }' -c 'man man'
EXPECT
|{{...}}
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}                none:exec-success   sh /etc/rc                       
|  0 {{ *\d+}}                none:exec-success   /bin/sh /usr/bin/man man         
|  0 {{ *\d+}}                none:exec-success   /sbin/sysctl -n hw.machine_arch  
|  0 {{ *\d+}}                none:exec-success   /sbin/sysctl -n hw.machine       
|  0 {{ *\d+}}                none:exec-success   /usr/bin/locale                  
|  0 {{ *\d+}}                none:exec-success   /usr/bin/zcat /usr/share/man/man1/man.1.gz
|  0 {{ *\d+}}                none:exec-success   head -1                          
|  0 {{ *\d+}}                none:exec-success   /usr/bin/zcat /usr/share/man/man1/man.1.gz
|  0 {{ *\d+}}                none:exec-success   mandoc -Tlint -Wunsupp           
|  0 {{ *\d+}}                none:exec-success   /usr/bin/zcat /usr/share/man/man1/man.1.gz
|  0 {{ *\d+}}                none:exec-success   mandoc                           
|  0 {{ *\d+}}                none:exec-success   less                             
|
STDERR
|dtrace: description 'proc:::exec-success ' matched 1 probe

NAME the flag is down while no static probe is enabled
RUN trapline dtrace -x sdt=2018 -qn 'fbt::read_random_uio:entry { printf("%d\n", `sdt_probes_enabled); }' -c 'dd if=/dev/urandom of=/dev/null bs=64 count=2'
EXPECT
|dd: 2+0 records in, 2+0 records out, 128 bytes
|0
|0
|
STDERR

NAME the flag is up while the random provider is watched
RUN trapline dtrace -x sdt=2018 -qn 'fbt::read_random_uio:entry { printf("%d\n", `sdt_probes_enabled); } random::: { printf("%s:%s %d\n", probefunc, probename, args[0]); }' -c 'sleep 0.6; dd if=/dev/urandom of=/dev/null bs=64 count=2'
EXPECT
|dd: 2+0 records in, 2+0 records out, 128 bytes
|1
|event_processor:debug {{\d+}}
|1
|
STDERR

NAME the kernel's calls go to a stub while the provider is not loaded
RUN trapline dtrace -x sdt=2018 -qn 'syscall::getpid:entry { printf("%a\n", (uintptr_t)`sdt_probe_func); }' -c 'getpid 1; kldunload dtraceall; getpid 1; kldload sdt; getpid 1'
EXPECT
|getpid: 1 calls
|getpid: 1 calls
|getpid: 1 calls
|kernel`dtrace_probe
|kernel`sdt_probe_stub
|kernel`dtrace_probe
|
STDERR

NAME in the newest generation to what keeps the sixth argument
RUN trapline dtrace -qn 'syscall::getpid:entry { printf("%a\n", (uintptr_t)`sdt_probe_func); }' -c 'kldunload dtraceall; getpid 1; kldload sdt; getpid 1'
EXPECT
|getpid: 1 calls
|getpid: 1 calls
|kernel`sdt_probe_stub
|kernel`sdt_dtrace_probe
|
STDERR

NAME what a generation cannot have
ISAS aarch64
RUN trapline dtrace -x sdt=2005 -n 'proc::: { }'
EXPECT
STDERR
|dtrace: there is no AArch64 kernel with SDT of 2005: illumos does not run on it
EXIT 1

NAME a generation there never was
RUN trapline dtrace -x sdt=1999 -n 'proc::: { }'
EXPECT
STDERR
|dtrace: -x sdt 1999: choose from 2005, 2013, 2018, 2024
EXIT 2

NAME illumos's probes are in the functions that have them
ISAS x86_64
RUN trapline dtrace -x sdt=2005 -n 'proc:::exec-success { trace(execname); }' -c 'echo one'
EXPECT
|one
|CPU     ID                    FUNCTION:NAME
|  0 {{ *\d+}}           do_execve:exec-success   sh                               
|  0 {{ *\d+}}           do_execve:exec-success   echo                             
|
STDERR
|dtrace: description 'proc:::exec-success ' matched 1 probe

NAME static probes are listed by their provider
RUN trapline dtrace -l -P priv -P random
EXPECT
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|{{ *\d+}}       priv            kernel                        priv_check priv-err
|{{ *\d+}}       priv            kernel                        priv_check priv-ok
|{{ *\d+}}     random           fortuna                   event_processor debug
STDERR

NAME a probe's arguments with their types
RUN trapline dtrace -lv -n io:::start
EXPECT
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|{{ *\d+}}         io            kernel                              none start
|{{...}}
|	Argument Types
|		args[0]: struct bio *
|		args[1]: struct devstat *
|{{...}}

NAME what a disk is asked for, and by whom
RUN trapline dtrace -qn 'io:::start { printf("%s %s %s %d at %d\n", execname, xlate <devinfo_t *> (args[1])->dev_statname, xlate <bufinfo_t *> (args[0])->b_flags & B_READ ? "reads" : "writes", args[0]->bio_bcount, xlate <bufinfo_t *> (args[0])->b_blkno); }' -c 'dd if=/dev/md0 of=/copy bs=1024 count=2; dd if=/copy of=/dev/md0 bs=512 count=1'
EXPECT
|dd: 2+0 records in, 2+0 records out, 2048 bytes
|dd: 1+0 records in, 1+0 records out, 512 bytes
|dd md0 reads 1024 at 0
|dd md0 reads 1024 at 2
|dd md0 writes 512 at 0
|
STDERR

NAME open files by descriptor
RUN trapline dtrace -qn 'fbt::sys_read:entry /execname == "cat"/ { printf("%s in %s at %d on %s\n", fds[args[1]->fd].fi_name, fds[args[1]->fd].fi_dirname, fds[args[1]->fd].fi_offset, fds[args[1]->fd].fi_fs); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|motd in /etc at 0 on memfs
|motd in /etc at 71 on memfs
|
STDERR

NAME six arguments
RUN trapline dtrace -qn 'test:::sdttest { printf("%d %d %d %d %d %d\n", args[0], args[1], args[2], args[3], args[4], args[5]); }' -c 'sysctl debug.dtracetest.sdttest=1'
EXPECT
|debug.dtracetest.sdttest: 0 -> 1
|1 2 3 4 5 6
|
STDERR

NAME how long programs sleep
RUN trapline dtrace -qn 'sched:::off-cpu /execname == "sleep"/ { self->since = timestamp; } sched:::on-cpu /self->since/ { @ = max((timestamp - self->since) / 10000000); self->since = 0; }' -c 'sleep 0.05'
EXPECT
|
|{{ +}}5
STDERR
