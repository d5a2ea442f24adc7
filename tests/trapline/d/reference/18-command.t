# The command: flags, messages, exit codes, data models (sections 18, 19)

$ -e -n 'BEGIN { trace(1); }'

$ -V
|dtrace: Sun D 1.14

$ -l -V
!dtrace: only one of the [-AGhlV] options can be specified at a time
= 2

$ -q -x flowindent -n 'fbt::malloc:entry {trace(1)}'
|CPU FUNCTION                                 
|  0  -> malloc                                1  0    -> malloc                              1  0      -> malloc                            1  0        -> malloc                          1

$ -o /nonexistent/x -n BEGIN
!dtrace: failed to open output file '/nonexistent/x': No such file or directory
= 1

$ -p abc -n BEGIN
!dtrace: -p abc: expected the number of a process of the guest
= 2

$ -32 -n 'BEGIN { trace(sizeof(long)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         4
|

$ -64 -n 'BEGIN { trace(sizeof(long)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 8
|

$ foo
!dtrace: no probes specified
= 1

$ -q foo
!dtrace: no probes specified
= 1

$ -n 'BEGIN { exit(0)}' foo
!dtrace: invalid probe specifier BEGIN { exit(0)}: extra argument 'foo' ($1) is never used (option argref allows it)
= 1

$ -32 -x errtags -n 'BEGIN { trace(sizeof(long)); trace(sizeof(void *)); trace(sizeof(int64_t)); trace(sizeof(size_t)); trace((long)-1); trace((int64_t)-1); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         4        4        8        4       -1               -1
|

$ -32 -x errtags -n 'BEGIN { trace(`ticks); }'
!dtrace: invalid probe specifier ...: [D_SYM_MODEL] in action list: cannot use the LP64 symbol ticks in a program that is ILP32
= 1

$ -32 -x errtags -n 'BEGIN { print(5000000000); print(4294967295); print(0xffffffff); print(1L); print((char *)8); print(NULL); print((char *)12 - (char *)8); print(pid); print(curthread); printf("%?p|%ld|%lld", (char *)8, 5L, 6LL); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN long long 0x12a05f200
|long long 0xffffffff
|unsigned int 0xffffffff
|long 0x1
|char * 0x8
|int 0
|ptrdiff_t 0x4
|pid_t 0x2a
|void * 0x8000abc0
|       8|5|6
|

$ -32 -x errtags -n 'struct s { char a; long long b; void *c; long d; } v; BEGIN { trace(sizeof(v)); trace(offsetof(struct s, d)); v.c = (void *)0x1234567890; v.d = 0x1ffffffff; print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        24       20struct s {
|    char a = '\0'
|    long long b = 0
|    void *c = 0x34567890
|    long d = 0xffffffff
|}
|

$ -32 -x errtags -n 'BEGIN { printf("%ld", 5LL); }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %ld
!	 prototype: long
!	  argument: long long
= 1

$ -64 -x errtags -n 'BEGIN { printf("%ld", 5L); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 5
|

$ -32 -x errtags -n 'fbt::malloc:entry { trace(arg0); trace(args[0]); trace(curpsinfo->pr_pid); exit(0) }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve curpsinfo: unknown variable name
= 1

$ -32 -x errtags -n 'fbt::malloc:entry { trace(args[0]); trace(strlen(execname)); @[execname] = quantize(arg0); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0     19                     malloc:entry        64        2
|
|  sh                                                
|           value  ------------- Distribution ------------- count    
|              32 |                                         0        
|              64 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|             128 |                                         0        
|
