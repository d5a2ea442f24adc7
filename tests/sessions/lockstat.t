# lockstat(1) on the kernel guest.

NAME two readers of one disk
RUN trapline lockstat -C sh -c 'dd if=/dev/md0 of=/dev/null bs=512 count=4 & dd if=/dev/md0 of=/dev/null bs=512 count=4; wait'
EXPECT
|dd: 4+0 records in, 4+0 records out, 2048 bytes
|dd: 4+0 records in, 4+0 records out, 2048 bytes
|
|SX exclusive block: 1 events in 0.00{{\d}} seconds ({{\d+}} events/sec)
|
|Count indv cuml rcnt     nsec Lock                   Caller                  
|-------------------------------------------------------------------------------
|    1 100% 100% 0.00 {{ *\d+}} 0x{{\w+ +}}vn_lock+0x{{\w+ +}}
|-------------------------------------------------------------------------------
STDERR

NAME who holds the process tree, with a histogram and a stack
RUN trapline lockstat -e 37 -l proctree_lock -s 3 -D 1 true
EXPECT
|
|SX exclusive hold: {{\d+}} events in 0.00{{\d}} seconds ({{\d+}} events/sec)
|
|-------------------------------------------------------------------------------
|Count indv cuml rcnt     nsec Lock                   Caller                  
|{{ *\d+ +\d+% +\d+%}} 0.00 {{ *\d+}} proctree_lock          {{\w+\+0x\w+ +}}
|
|      nsec ------ Time Distribution ------ count     Stack                   
|{{ *\d+ \|@+ *\d+ +\w+\+0x\w+ +}}
|{{...}}
|-------------------------------------------------------------------------------
STDERR

NAME the number of events alone
RUN trapline lockstat -e 33,37 -D 0 true
EXPECT
|{{ +\d+}} Spin lock hold
|{{ +\d+}} SX exclusive hold
STDERR

NAME one line to a record for awk
RUN trapline lockstat -p -e 37 -f do_fork true
EXPECT
|37 {{\d+}} proctree_lock do_fork+0x{{\w+}} 0.000000 {{\d+}}
|{{...}}
STDERR

NAME where the CPU is
RUN trapline lockstat -I -i 100 -k sleep 0.1
EXPECT
|
|Profiling interrupt: 10 events in 0.10{{\d}} seconds ({{\d+}} events/sec)
|
|Count indv cuml rcnt     nsec CPU+Pri_Class          Caller                  
|-------------------------------------------------------------------------------
|{{ +\d+ +\d+% +\d+%}} 0.00        0 cpu[0]+Idle            cpu_idle                
|{{...}}
|-------------------------------------------------------------------------------
STDERR

NAME the program it runs
RUN trapline lockstat -V -e 1,33 -o /dev/null true
EXPECT
STDERR
|lockstat: vvvv D program vvvv
|lockstat:::adaptive-block
|{
|	@avg[1ULL, (uintptr_t)arg0, caller] = avg(arg1);
|}
|
|lockstat:::spin-acquire
|{
|	self->ev33[(uintptr_t)arg0] = timestamp;
|}
|
|lockstat:::spin-release
|/(self->ev33[(uintptr_t)arg0])/
|{
|	@avg[33ULL, (uintptr_t)arg0, caller] = avg(timestamp -
|	    self->ev33[(uintptr_t)arg0]);
|	self->ev33[(uintptr_t)arg0] = 0;
|}
|
|lockstat: ^^^^ D program ^^^^

NAME an unknown lock
RUN trapline lockstat -l nolock true
EXPECT
STDERR
|lockstat: {{.*}}kernel: no symbol 'nolock'{{.*}}
EXIT 2

NAME an unknown event
RUN trapline lockstat -e 64 true
EXPECT
STDERR
|lockstat: -e 64: events are numbered 0 to 63
|Usage: lockstat [options] command [args]
|{{...}}
EXIT 1
