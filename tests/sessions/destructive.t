# Actions that change what is traced, and the kernel's state that only subroutines tell.

NAME a signal to the current process
RUN trapline dtrace -wqn 'syscall::read:entry /execname == "cat"/ { raise(SIGKILL); } proc:::signal-send /args[2] == SIGKILL/ { printf("%s is sent %d\n", args[1]->p_comm, args[2]); } proc:::exit /execname == "cat"/ { printf("%s exits, %d\n", execname, args[0]); }' -c 'cat /etc/motd; echo then'
EXPECT
|sh: Killed
|then
|cat is sent 9
|cat exits, 2
|
STDERR

NAME a process that is stopped does nothing more
RUN trapline dtrace -wqn 'syscall::read:entry /execname == "cat"/ { stop(); } syscall::write:entry /execname == "cat"/ { printf("it goes on\n"); } tick-300ms { exit(0); }' -c 'cat /etc/motd'
EXPECT
|
STDERR

NAME time goes by while a probe chills
RUN trapline dtrace -wqn 'BEGIN { this->start = timestamp; chill(1000000); printf("%d\n", timestamp - this->start); exit(0); }'
EXPECT
|1000000
|
STDERR

NAME a panic says who wanted it
RUN trapline dtrace -wqn 'syscall::read:entry /execname == "cat"/ { panic(); }' -c 'cat /etc/motd'
EXPECT
|
STDERR
|dtrace: guest kernel panic: dtrace: panic action at probe syscall:freebsd:read:entry (ecb 1) at kernel`dtrace_probe
|{{...}}
EXIT 1

NAME the program's memory is changed before it is written
RUN trapline dtrace -wqn 'syscall::write:entry /execname == "cat"/ { copyoutstr("HACKED!", arg1, 7); }' -c 'cat /etc/motd'
EXPECT
|HACKED! to the teaching kernel.
|Everything you see here may be probed.
|
STDERR

NAME without -w nothing of it is enabled
RUN trapline dtrace -qn 'syscall::read:entry { raise(SIGKILL); }'
STDERR
|dtrace: could not enable tracing: Destructive actions not allowed
EXIT 1

NAME locks and who holds them
RUN trapline dtrace -s locks.d -c 'cat /etc/motd'
FILE locks.d
|#pragma D option quiet
|lockstat:::adaptive-acquire
|/!seen["mutex"]++/
|{
|	printf("mutex: owned %d, by us %d, adaptive %d, spin %d, shared %d\n", mutex_owned(args[0]),
|	    mutex_owner(args[0]) == curthread, mutex_type_adaptive(args[0]), mutex_type_spin(args[0]), sx_shared_held(args[0]));
|}
|lockstat:::spin-acquire
|/!seen["spin"]++/
|{
|	printf("spin: owned %d, adaptive %d, spin %d\n", mutex_owned(args[0]), mutex_type_adaptive(args[0]), mutex_type_spin(args[0]));
|}
|lockstat:::sx-acquire
|/!seen["sx"]++/
|{
|	printf("sx: shared %d, exclusive %d, by us %d, as rw %d %d %d\n", sx_shared_held(args[0]), sx_exclusive_held(args[0]),
|	    sx_isexclusive(args[0]), rw_read_held(args[0]), rw_write_held(args[0]), rw_iswriter(args[0]));
|}
|lockstat:::adaptive-release /!seen["release"]++/ { this->lock = args[0]; freed = (uintptr_t)args[0]; }
|END
|{
|	printf("released: owned %d, owner %p\n", mutex_owned((void *)freed), mutex_owner((void *)freed));
|	printf("callout: owned %d\n", mutex_owned(&`callout_lock));
|}
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|mutex: owned 1, by us 1, adaptive 1, spin 0, shared 0
|sx: shared 0, exclusive 1, by us 1, as rw 0 1 1
|spin: owned 1, adaptive 0, spin 1
|released: owned 0, owner 0
|callout: owned 0
|
STDERR

NAME what is no lock is a bad address
RUN trapline dtrace -qn 'BEGIN { trace(mutex_owned((void *)8)); } BEGIN { exit(0); }'
EXPECT
|
STDERR
|{{dtrace: error on enabled probe ID 1 \(ID 1: dtrace:::BEGIN\): invalid address \(0x(10|c)\) in action #1 at DIF offset 24}}

NAME open files, the clock interrupt, time on the CPU, descent
RUN trapline dtrace -qn 'fbt::sys_read:entry /execname == "cat" && !n++/ { printf("file %d at %d, %p, %p\n", getf(args[1]->fd)->f_type, getf(args[1]->fd)->f_offset, getf(31), getf(-1)); printf("from 1: %d, from itself: %d, from 999: %d\n", progenyof(1), progenyof(pid), progenyof(999)); printf("ipl %d\n", ipl); } sched:::tick /n && !t++/ { printf("tick: ipl %d\n", ipl); }' -c 'cat /etc/motd; sleep 1'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|file 1 at 0, 0, 0
|from 1: 1, from itself: 1, from 999: 0
|ipl 0
|tick: ipl 1
|
STDERR
