# plockstat(1) on the kernel guest: the tables, the flags, and what is said when it cannot be.

NAME contention is what is shown if nothing else is asked for
RUN trapline plockstat contend
EXPECT
|contend: 20, 20, 60, sum 6
|
|Mutex block
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|   17 {{ *\d+}} contend`counter_lock         contend`count+{{.*}}
|{{...}}
|    1 {{ *\d+}} contend`adaptive_lock        contend`count_adaptively+{{.*}}
|
|Mutex unsuccessful spin
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|    1 {{ *\d+}} contend`adaptive_lock        contend`count_adaptively+{{.*}}
|
|R/W reader block
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|    2 {{ *\d+}} contend`table_lock           contend`look_up+{{.*}}
|
|R/W writer block
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|    2 {{ *\d+}} contend`table_lock           contend`update+{{.*}}
STDERR
|plockstat: pid 5 has exited

NAME hold times, the first row of each table
RUN trapline plockstat -v -H -n 1 contend
EXPECT
|plockstat: tracing enabled for pid 5
|contend: 20, 20, 60, sum 6
|
|Mutex hold
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|   20 {{ *\d+}} contend`counter_lock         contend`{{.*}}
|
|R/W reader hold
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|   10 {{ *\d+}} contend`table_lock           contend`look_up+{{.*}}
|
|R/W writer hold
|
|Count     nsec Lock                         Caller
|-------------------------------------------------------------------------------
|   10 {{ *\d+}} contend`table_lock           contend`{{.*}}

NAME a distribution and a stack
RUN trapline plockstat -s 3 -n 1 contend
EXPECT
|contend: 20, 20, 60, sum 6
|
|Mutex block
|
|-------------------------------------------------------------------------------
|Count     nsec Lock                         Caller
|   17 {{ *\d+}} contend`counter_lock         contend`count+{{.*}}
|
|      nsec ---- Time Distribution --- count Stack
|   1048576 |@                       |     1 libthr.so.3`mutex_lock_sleep+{{.*}}
|   2097152 |@                       |     1 libthr.so.3`pthread_mutex_lock+{{.*}}
|   4194304 |@                       |     1 contend`count+{{.*}}
|   8388608 |@@@@@@@@@@@@@@@@@@@     |    14{{ }}
|{{...}}

NAME a program without threads
RUN trapline plockstat ls
STDERR
|plockstat: failed to compile program: probe description plockstat5:::mutex-block does not match any probes
EXIT 1

NAME an option that is none
ISAS x86_64
RUN trapline plockstat -x nosuch=1 contend
STDERR
|plockstat: failed to set -x nosuch: Invalid option name
EXIT 1

NAME a process that never comes
ISAS x86_64
RUN trapline plockstat -p 99
STDERR
|plockstat: failed to grab process 99: the guest never has a process of that number
EXIT 1

NAME two processes
ISAS x86_64
RUN trapline plockstat -p 4 5
STDERR
|plockstat: only one pid is allowed
|Usage:
|{{...}}
EXIT 2
