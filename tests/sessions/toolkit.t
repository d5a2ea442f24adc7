# Scripts of the DTraceToolkit's kind, as they would be written for FreeBSD or illumos, on the kernel guest.

NAME who executes what (execsnoop)
RUN trapline dtrace -s execsnoop.d -c 'cat /etc/motd'
FILE execsnoop.d
|#!/usr/sbin/dtrace -s
|#pragma D option quiet
|#pragma D option switchrate=10hz
|dtrace:::BEGIN { printf("%-20s %6s %6s:  %s\n", "TIME", "PID", "PPID", "ARGS"); }
|proc:::exec-success
|{
|	printf("%-20Y %6d %6d:  %s\n", walltimestamp, pid, ppid, stringof(curpsinfo->pr_psargs));
|}
EXPECT
|TIME                    PID   PPID:  ARGS
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|2023 Nov 14 22:13:20      4      1:  sh /etc/rc
|2023 Nov 14 22:13:20      5      4:  cat /etc/motd
|
STDERR

NAME reads and writes with the paths of their files (rwsnoop)
RUN trapline dtrace -s rwsnoop.d -c 'cat /etc/motd'
FILE rwsnoop.d
|#pragma D option quiet
|dtrace:::BEGIN { printf("%-12s %1s %7s %s\n", "CMD", "D", "BYTES", "FILE"); }
|syscall::read:entry, syscall::write:entry { self->fd = arg0; self->ok = 1; }
|syscall::read:return, syscall::write:return
|/self->ok/
|{
|	this->dir = probefunc == "read" ? "R" : "W";
|	this->path = fds[self->fd].fi_pathname;
|	printf("%-12.12s %1s %7d %s\n", execname, this->dir, (int)arg0, this->path);
|	self->fd = 0;
|	self->ok = 0;
|}
EXPECT
|CMD          D   BYTES FILE
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|sh           R      37 /etc/rc
|cat          R      71 /etc/motd
|cat          W      71 /dev/console
|cat          R       0 /etc/motd
|sh           R       0 /etc/rc
|
STDERR

NAME illumos's io script on FreeBSD's arguments (iosnoop)
RUN trapline dtrace -s iosnoop.d -c 'dd if=/dev/md0 of=/copy bs=1024 count=2; dd if=/copy of=/dev/md0 bs=512 count=1'
FILE iosnoop.d
|#pragma D option quiet
|dtrace:::BEGIN { printf("%1s %6s %6s %-8s %s\n", "D", "BLOCK", "SIZE", "DEVICE", "PATHNAME"); }
|io:::start { start[arg0] = timestamp; @bytes[execname, args[1]->dev_statname, args[2]->fi_pathname] = sum(args[0]->b_bcount); }
|io:::done
|/start[arg0]/
|{
|	printf("%1s %6d %6d %-8s %s (%s in %s)\n", args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_blkno,
|	    args[0]->b_bcount, args[1]->dev_statname, args[2]->fi_pathname, args[2]->fi_name, args[2]->fi_dirname);
|	start[arg0] = 0;
|}
|END { printa("%s %s %s %@d\n", @bytes); }
EXPECT
|D  BLOCK   SIZE DEVICE   PATHNAME
|dd: 2+0 records in, 2+0 records out, 2048 bytes
|dd: 1+0 records in, 1+0 records out, 512 bytes
|R      0   1024 md0      /dev/md0 (md0 in /dev)
|R      2   1024 md0      /dev/md0 (md0 in /dev)
|W      0    512 md0      /dev/md0 (md0 in /dev)
|dd md0 /dev/md0 2560
|
STDERR

NAME system calls with their arguments (dtruss): the NUL at a string's end is shown, as there
ISAS x86_64 riscv64
RUN trapline dtrace -s dtruss.d -c 'cat /etc/motd' cat
FILE dtruss.d
|#pragma D option quiet
|syscall::open:entry, syscall::read:entry /execname == $$1/ { self->arg0 = arg0; self->arg1 = arg1; self->arg2 = arg2; self->ok = 1; }
|syscall::read:return /self->ok/
|{
|	printf("%s(0x%X, \"%S\", 0x%X)\t\t = %d %d\n", probefunc, self->arg0,
|	    stringof(copyin(self->arg1, self->arg2 < 16 ? self->arg2 : 16)), self->arg2, (int)arg0, (int)errno);
|	self->ok = 0;
|}
|syscall::open:return /self->ok/
|{
|	printf("%s(\"%S\", 0x%X)\t\t = %d Err#%d\n", probefunc, copyinstr(self->arg0), self->arg1, (int)arg0, (int)errno);
|	self->ok = 0;
|}
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|open("/lib/libc.so.7\0", 0x0)		 = 3 Err#0
|open("/etc/motd\0", 0x0)		 = 3 Err#0
|read(0x3, "Welcome to the t\0", 0x400)		 = 71 0
|read(0x3, "Welcome to the t\0", 0x400)		 = 0 0
|
STDERR

NAME a process's time on the CPU is not that in its system calls (procsystime)
RUN trapline dtrace -s procsystime.d -c 'sleep 1'
FILE procsystime.d
|#pragma D option quiet
|#pragma D option defaultargs
|inline string NAME = $$1;
|syscall:::entry /NAME == "" || execname == NAME/ { self->start = timestamp; self->vstart = vtimestamp; }
|syscall::nanosleep:return /self->start/
|{
|	this->elapsed = timestamp - self->start;
|	this->cpu = vtimestamp - self->vstart;
|	printf("%s %d s, on the CPU %s\n", probefunc, this->elapsed / 1000000000,
|	    this->cpu > 0 && this->cpu < 1000000 ? "less than 1 ms" : lltostr(this->cpu));
|}
EXPECT
|nanosleep 1 s, on the CPU less than 1 ms
|
STDERR

NAME who sends signals to whom (sigdist)
RUN trapline dtrace -qn 'proc:::signal-send /args[2] == SIGTERM/ { @[execname, args[1]->pr_fname, args[2]] = count(); } END { printa("%s -> %s %6d %6@d\n", @); }' -c 'sleep 10 & kill 5'
EXPECT
|kill -> sleep     15      1
|
STDERR

NAME threads on and off the CPU, with illumos's members of FreeBSD's arguments
RUN trapline dtrace -qn 'sched:::off-cpu /execname == "cat"/ { @[args[1]->pr_fname, args[0]->pr_lwpid > 0, stringof(curpsinfo->pr_psargs)] = count(); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|
|  sh                                                        1  cat /etc/motd                                                     1
STDERR

NAME where a process is
RUN trapline dtrace -qn 'syscall::read:entry /execname == "cat"/ { printf("%s %s %s\n", cwd, root, fds[arg0].fi_pathname); }' -c 'mkdir /a; mkdir /a/b; cd /a/b; echo hi > h; cat h'
EXPECT
|hi
|/a/b / /a/b/h
|/a/b / /a/b/h
|
STDERR
