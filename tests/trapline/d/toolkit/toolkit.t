# Scripts in the manner of the known toolkits

$ -s newproc.d
|PID    PPID   PROGRAM    ARGS
|42     1      sh         sh -c ls\0
|43     42     cat        cat /etc/motd\0
|

$ -s opens.d 0
|  UID   PID COMM     RET ERR PATH
|  100    43 cat        0   0 /etc/motd
|

$ -s iotop.d
|1 ms, read:    512 bytes
|     0     42      1 sh                    512
|   100     43     42 cat                  1117
|2 ms, read:   1024 bytes
|3 ms, read:     93 bytes
|

$ -C -s rwsnoop.d
|  UID   PID CMD      D   BYTES
|    0    42 sh       R     512
|  100    43 cat      R    1024
|  100    43 cat      R      93
|  100    43 cat      R       0
|

$ -s hotkernel.d
|FUNCTION                          COUNT
|kernel`sys_read                      18
|kernel                               18
|

$ -s latency.d sys_read
|
|  sh                                                  sys_read                                          
|           value  ------------- Distribution ------------- count    
|              16 |                                         0        
|              32 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|              64 |                                         0        
|
|  cat                                                 sys_read                                          
|           value  ------------- Distribution ------------- count    
|              16 |                                         0        
|              32 |@@@@@@@@@@@@@                            1        
|              64 |@@@@@@@@@@@@@                            1        
|             128 |                                         0        
|             256 |                                         0        
|             512 |@@@@@@@@@@@@@                            1        
|            1024 |                                         0        
|

$ -s percall.d
|PROGRAM   CALLS       MIN       AVG       MAX    STDDEV       CPU
|sh            1     60000     60000     60000         0     30000
|cat           3     40000    213333    520000    217460    320000
|

$ -s flow.d sh
|CPU FUNCTION                                 
|  0  -> sys_read                              
|  0    -> dofileread                          
|  0      -> malloc                            
|  0      <- malloc                            
|  0    <- dofileread                          
|  0   | sys_read:return                       
|  0  <- sys_read                              
|

$ -s delta.d 5
|     500 us sh         sys_read:entry
|      10 us sh         dofileread:entry
|       5 us sh         malloc:entry
|     485 us cat        namei:entry
|     400 us cat        sys_read:entry
|

$ -s delta.d
|     500 us sh         sys_read:entry
|      10 us sh         dofileread:entry
|       5 us sh         malloc:entry
|     485 us cat        namei:entry
|     400 us cat        sys_read:entry
|      20 us cat        malloc:entry
|     800 us cat        sys_read:entry
|      20 us cat        malloc:entry
|

$ -s allocsize.d
|bytes by hundreds
|           value  ------------- Distribution ------------- count    
|             < 0 |                                         0        
|               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        
|             100 |                                         0        
|             200 |                                         0        
|             300 |                                         0        
|             400 |                                         0        
|             500 |                                         0        
|             600 |                                         0        
|             700 |                                         0        
|             800 |                                         0        
|             900 |                                         0        
|            1000 |@@@@@@@@@@                               1        
|            1100 |                                         0        
|
|bytes by magnitude
|           value  ------------- Distribution ------------- count    
|               7 |                                         0        
|               8 |@@@@@@@@@@                               1        
|               9 |                                         0        
|              10 |                                         0        
|              20 |                                         0        
|              30 |                                         0        
|              40 |                                         0        
|              50 |                                         0        
|              60 |@@@@@@@@@@                               1        
|              70 |                                         0        
|              80 |                                         0        
|              90 |@@@@@@@@@@                               1        
|             100 |                                         0        
|             200 |                                         0        
|             300 |                                         0        
|             400 |                                         0        
|             500 |                                         0        
|             600 |                                         0        
|             700 |                                         0        
|             800 |                                         0        
|             900 |                                         0        
|            1000 |@@@@@@@@@@                               1        
|            2000 |                                         0        
|
|

$ -s whocalls.d malloc
|
|
|              kernel`syscall+0x20
|              zfs.ko`zfs_read+0x4
|                3
|
|              libc.so.7`read+0x8
|              sh`main+0x10
|                3

$ -s specread.d
|cat sys_read:entry
|cat malloc:entry
|cat malloc:return
|

$ -s ring.d
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry           1500000
|  0     23                 dofileread:entry           1510000
|  0     19                     malloc:entry           1515000
|  0     21                      namei:entry           2000000
|  0     17                   sys_read:entry           2400000
|  0     19                     malloc:entry           2420000
|  0     17                   sys_read:entry           3220000
|  0     19                     malloc:entry           3240000
|  0     17                   sys_read:entry           3600000
|  0     19                     malloc:entry           3620000
|

$ -s rate.d
|in 3 ms
|dofileread          1 times
|namei               1 times
|malloc              4 times
|sys_read            4 times
|dofileread          0 a ms
|namei               0 a ms
|malloc              1 a ms
|sys_read            1 a ms
|dofileread          0 cleared
|malloc              0 cleared
|namei               0 cleared
|sys_read            0 cleared
|

$ -s bywho.d
|root       sh     1
|cat-user   sh     3
|

$ -s lookups.d
|motd in /etc: 9 characters, Motd
|first part: etc
|next part: motd
|the message of the day
|

$ -s branches.d
|64 is middling
|1024 is large
|93 is middling
|8 is small
|1 small, 2 middling, 1 large
|

$ -s countdown.d
|3...2...1...blastoff!
|
= 7

$ -s errors.d
|fault 1 in action 1 of enabling 2
|fault 4 in action 1 of enabling 3
|fault 1 in action 1 of enabling 2
|fault 4 in action 1 of enabling 3
|fault 1 in action 1 of enabling 2
|fault 4 in action 1 of enabling 3
|fault 1 in action 1 of enabling 2
|fault 4 in action 1 of enabling 3
|
|  bad address                                                       4
|  division                                                          4
!dtrace: error on enabled probe ID 2 (ID 19: fbt:kernel:malloc:entry): invalid address (0x0) in action #1 at DIF offset 4
!dtrace: error on enabled probe ID 3 (ID 20: fbt:kernel:malloc:return): divide-by-zero in action #1 at DIF offset 16
!dtrace: error on enabled probe ID 2 (ID 19: fbt:kernel:malloc:entry): invalid address (0x0) in action #1 at DIF offset 4
!dtrace: error on enabled probe ID 3 (ID 20: fbt:kernel:malloc:return): divide-by-zero in action #1 at DIF offset 16
!dtrace: error on enabled probe ID 2 (ID 19: fbt:kernel:malloc:entry): invalid address (0x0) in action #1 at DIF offset 4
!dtrace: error on enabled probe ID 3 (ID 20: fbt:kernel:malloc:return): divide-by-zero in action #1 at DIF offset 16
!dtrace: error on enabled probe ID 2 (ID 19: fbt:kernel:malloc:entry): invalid address (0x0) in action #1 at DIF offset 4
!dtrace: error on enabled probe ID 3 (ID 20: fbt:kernel:malloc:return): divide-by-zero in action #1 at DIF offset 16

$ -s threads.d
|thread 100001 of kernel (42), text ffffffff80100100
|fd 3, 512 bytes to 406000
|

$ -s psinfo.d
|42 1001 sh -c ls O on cpu 0
|

$ -s translate.d
|bulk on 3: 2048
|

$ -s depth.d
|-> sys_read
|  -> dofileread
|    -> malloc
|    <- malloc
|  <- dofileread
|<- sys_read
|

$ -s pairs.d
|sh: malloc 15 us after read
|cat: malloc 20 us after read
|cat: malloc 20 us after read
|cat: malloc 20 us after read
|

$ -s when.d
|2023 Nov 14 22:13:20 001 ms: sh
|2023 Nov 14 22:13:20 002 ms: cat
|2023 Nov 14 22:13:20 003 ms: cat
|

$ -s matrix.d
|sh   dofileread     1
|cat  malloc         3
|sh   malloc         1
|cat  namei          1
|cat  sys_read       3
|sh   sys_read       1
|
|
|              key  min .----------. max  | count
|              cat    4 : ▃  ▃   ▃ : 2048 | 3
|               sh    4 :    █     : 2048 | 1
|

$ -s top.d
|TOP TWO
|    4 sys_read
|    4 malloc
|

$ -s bits.d
|READ APPEND 0x2c
|60 60
|

$ -s mem.d
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry 
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 03 00 00 00 00 00 00 00 00 60 40 00 00 00 00 00  .........`@.....
|        10: 00 02 00 00 00 00 00 00                          ........
|  hello                            struct read_args {
|    int fd = 0x3
|    char *buf = 0x406000
|    unsigned long nbyte = 0x200
|}
|

$ -s watch.d hello 3 unused
|watch.d: hello then 3, own pid another
|
= 3

$ -w -s shell.d
|[echo sh has pid 42]
|[echo cat has pid 43]
|

$ -s json.d
|sh, /etc/rc, 0
|no such member
|

$ -s kinds.d
|
|  names                                               entry                                                             1
|  files                                               entry                                                             4
|  memory                                              entry                                                             4
|
|  all                                                 entry                                                             9
|

$ -s hist.d
|
|
|              key  ------------- Distribution ------------- count    
|               sh |@@@@@@@@@@@@@                            512      
|              cat |@@@@@@@@@@@@@@@@@@@@@@@@@@@              1117     
|
