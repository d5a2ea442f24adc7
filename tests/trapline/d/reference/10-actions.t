# Actions (section 10), their default layouts (15), stacks and symbols (17)

$ -x errtags -n 'BEGIN { trace(1, 2); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: trace( ) takes 1 argument, not 2
= 1

$ -x errtags -n 'BEGIN { trace(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: trace( ) takes 1 argument, not 0
= 1

$ -x errtags -n 'BEGIN { trace((char)200); trace((short)-5); trace(-5); trace(-5LL); trace("abc"); trace(execname); trace(`proc0.p_comm); trace(`rootvnode); trace(pid); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN  200 65531       -5               -5  abc                                sh                                 kernel                           
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 05 00 00 00 05 1d 72 6f 6f 74 00 00 00 00 00 00  ......root......
|        10: 00 00 00 00 00 00 00 00                          ........
|       42
|

$ -q -n 'BEGIN { trace((char)200); trace((short)-5); trace(-5); trace(-5LL); trace("abc"); trace(execname); trace(`proc0.p_comm); trace(`rootvnode); trace(pid); exit(0) }'
|20065531-5-5abcshkernel
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 05 00 00 00 05 1d 72 6f 6f 74 00 00 00 00 00 00  ......root......
|        10: 00 00 00 00 00 00 00 00                          ........
|42

$ -q -x rawbytes -n 'BEGIN { trace(`proc0.p_comm);  exit(0) }'
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 6b 65 72 6e 65 6c 00 00 00 00 00 00 00 00 00 00  kernel..........
|

$ -x errtags -n 'BEGIN { trace((void)1) }'
!dtrace: invalid probe specifier ...: [D_TRACE_VOID] in action list: trace( ) of an expression without a value
= 1

$ -x errtags -n 'BEGIN { trace(stack()); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              0xd7ace0200000000
|              kernel`sys_read+0x10
|              kernel`syscall+0x20
|              zfs.ko`zfs_read+0x4
|
|

$ -x errtags -n 'BEGIN { trace(count()); }'
!dtrace: invalid probe specifier ...: [D_TRACE_VOID] in action list: trace( ) of an expression without a value
= 1

$ -x errtags -n 'BEGIN { @a = count(); trace(@a); }'
!dtrace: invalid probe specifier ...: [D_TRACE_AGG] in action list: trace( ) cannot show an aggregation: use printa( )
= 1

$ -x errtags -n 'BEGIN { @a = count(); print(@a); }'
!dtrace: invalid probe specifier ...: [D_PRINT_AGG] in action list: print( ) cannot show an aggregation: use printa( )
= 1

$ -x errtags -n 'BEGIN { print(1, 2); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: print( ) takes 1 argument, not 2
= 1

$ -q -n 'BEGIN { print(`proc0.p_comm); print(execname); print((char)'\''a'\''); print(&`proc0); print(`proc0.p_u); print((uint64_t)5); print(self->x); exit(0) } END { self->x = 1; }'
!dtrace: invalid probe specifier ...: in action list: self->x has not been declared or assigned
= 1

$ -x errtags -n 'BEGIN { tracemem(&`proc0, 8); tracemem(&`proc0, 20); tracemem(&`proc0, 20, 6); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65 72 6e                          *...kern
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65 72 6e 65 6c 00 00 00 00 00 00  *...kernel......
|        10: 00 00 00 00                                      ....
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65                                *...ke
|
|

$ -x errtags -n 'BEGIN { tracemem(&`proc0, -1); }'
!dtrace: invalid probe specifier ...: [D_TRACEMEM_SIZE] in action list: tracemem( ) argument #2 is not a positive constant
= 1

$ -x errtags -n 'BEGIN { tracemem(&`proc0, pid); }'
!dtrace: invalid probe specifier ...: [D_TRACEMEM_SIZE] in action list: tracemem( ) argument #2 is not a positive constant
= 1

$ -x errtags -n 'BEGIN { tracemem(&`proc0); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: tracemem( ) takes at least 2 arguments, not 1
= 1

$ -x errtags -n 'BEGIN { tracemem(&`proc0, 8, 2, 3); }'
!dtrace: invalid probe specifier ...: [D_TRACEMEM_ARGS] in action list: tracemem( ) takes three arguments at most
= 1

$ -x errtags -n 'BEGIN { tracemem("abc", 8); }'
!dtrace: invalid probe specifier ...: [D_TRACEMEM_ADDR] in action list: tracemem( ) argument #1 is neither pointer nor integer
= 1

$ -x errtags -n 'BEGIN { stack(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              0xd7ace0200000000
|              kernel`sys_read+0x10
|              kernel`syscall+0x20
|              zfs.ko`zfs_read+0x4
|
|

$ -x errtags -n 'BEGIN { stack(2); ustack(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              0xd7ace0200000000
|              kernel`sys_read+0x10
|
|              libc.so.7`read+0x8
|
|

$ -x errtags -n 'BEGIN { stack(0) }'
!dtrace: invalid probe specifier ...: [D_STACK_SIZE] in action list: the number of frames is not a positive constant
= 1

$ -x errtags -n 'BEGIN { stack(-1) }'
!dtrace: invalid probe specifier ...: [D_STACK_SIZE] in action list: the number of frames is not a positive constant
= 1

$ -x errtags -n 'BEGIN { stack(pid) }'
!dtrace: invalid probe specifier ...: [D_STACK_SIZE] in action list: the number of frames is not a positive constant
= 1

$ -x errtags -n 'BEGIN { stack(1,2) }'
!dtrace: invalid probe specifier ...: [D_STACK_PROTO] in action list: stack( ) takes one argument at most, not 2
= 1

$ -x errtags -n 'BEGIN { ustack(1,2); ustack(1, 0); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              libc.so.7`read+0x8
|
|              libc.so.7`read+0x8
|
|

$ -x errtags -n 'BEGIN { ustack(0) }'
!dtrace: invalid probe specifier ...: [D_USTACK_FRAMES] in action list: the number of frames is not a positive constant
= 1

$ -x errtags -n 'BEGIN { ustack(1, -1) }'
!dtrace: invalid probe specifier ...: [D_USTACK_STRSIZE] in action list: ustack( ) argument #2 is not a constant of 0 or more
= 1

$ -x errtags -n 'BEGIN { ustack(1, 2, 3) }'
!dtrace: invalid probe specifier ...: [D_USTACK_PROTO] in action list: ustack( ) takes two arguments at most, not 3
= 1

$ -x errtags -n 'BEGIN { jstack(); jstack(2, 100); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              libc.so.7`read+0x8
|              sh`main+0x10
|
|              libc.so.7`read+0x8
|              sh`main+0x10
|
|

$ -x errtags -n 'BEGIN { sym((uintptr_t)&`proc0); func(0xffffffff80001004); mod(0xffffffff80009000); sym(5); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   kernel`proc0                                        kernel`sys_read                                     zfs.ko                                              0x5                                               
|

$ -x errtags -n 'BEGIN { usym(0x401004); ufunc(0x402008); umod(0x402000); uaddr(0x401004); usym(5); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   sh`main                                             libc.so.7`read                                      libc.so.7                                           sh`main+0x4                                         0x5                                               
|

$ -x errtags -n 'BEGIN { sym("a") }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: sym( ) argument #1 is incompatible with its prototype: uintptr_t wanted, string given
= 1

$ -x errtags -n 'BEGIN { sym() }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: sym( ) takes 1 argument, not 0
= 1

$ -x errtags -n 'BEGIN { exit("a") }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: exit( ) argument #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'BEGIN { exit() }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: exit( ) takes 1 argument, not 0
= 1

$ -x errtags -n 'BEGIN { exit(1, 2) }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: exit( ) takes 1 argument, not 2
= 1

$ -x errtags -n 'BEGIN { @a = count(); clear(@a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|                0

$ -x errtags -n 'BEGIN { @a[1] = count(); @a[2] = sum(5); @a[3] = count(); trunc(@a, 1); exit(0) }'
!dtrace: invalid probe specifier ...: [D_AGG_REDEF] in action list: aggregation redefined: @a is count( ), not sum( )
= 1

$ -x errtags -n 'BEGIN { @a[1] = sum(1); @a[2] = sum(5); @a[3] = sum(3); trunc(@a, 1); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        2                5

$ -x errtags -n 'BEGIN { @a[1] = sum(1); @a[2] = sum(5); @a[3] = sum(3); trunc(@a, -1); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        1                1

$ -x errtags -n 'BEGIN { @a[1] = sum(1); @a[2] = sum(5); @a[3] = sum(3); trunc(@a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN { @a[1] = sum(1); trunc(@a, "x"); exit(0) }'
!dtrace: invalid probe specifier ...: [D_TRUNC_SCALAR] in action list: trunc( ) argument #2 is not a scalar
= 1

$ -x errtags -n 'BEGIN { trunc(@a); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -n 'BEGIN { clear(@a); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -n 'BEGIN { clear(1); }'
!dtrace: invalid probe specifier ...: [D_CLEAR_AGGARG] in action list: clear( ) argument #1 is not an aggregation
= 1

$ -x errtags -n 'BEGIN { clear(); }'
!dtrace: invalid probe specifier ...: [D_CLEAR_PROTO] in action list: clear( ) takes 1 argument
= 1

$ -x errtags -n 'BEGIN { @a = count(); clear(@a, @a); }'
!dtrace: invalid probe specifier ...: [D_CLEAR_PROTO] in action list: clear( ) takes 1 argument
= 1

$ -x errtags -n 'BEGIN { @a = sum(1000); normalize(@a, 10); printa(@a); denormalize(@a); printa(@a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              100
|
|             1000
|
|

$ -x errtags -n 'BEGIN { @a = sum(1000); normalize(@a, 0); printa(@a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|             1000
|
|

$ -x errtags -n 'BEGIN { @a = sum(1000); x = 4; normalize(@a, x); printa(@a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              250
|
|

$ -x errtags -n 'BEGIN { @a = sum(-1000); normalize(@a, 10); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
| 1844674407370955061

$ -x errtags -n 'BEGIN { @a = quantize(100); normalize(@a, 10); denormalize(@a, 1); exit(0) }'
!dtrace: invalid probe specifier ...: [D_NORMALIZE_PROTO] in action list: denormalize( ) takes 1 argument
= 1

$ -x errtags -n 'BEGIN { setopt("quiet"); trace(1); exit(0); } END { trace(2); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         12

$ -x errtags -n 'BEGIN { setopt("quiet", "no"); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN { setopt("bufsize", "1m"); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): couldn't set option "bufsize" to "1m": Operation illegal when tracing is active

$ -x errtags -n 'BEGIN { setopt("nosuch", "1m"); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): couldn't set option "nosuch" to "1m": Invalid option name

$ -x errtags -n 'BEGIN { setopt(1); exit(0); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: setopt( ) argument #1 is incompatible with its prototype: char * wanted, int given
= 1

$ -x errtags -n 'BEGIN { setopt(); exit(0); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: setopt( ) takes 1 to 2 arguments, not 0
= 1

$ -w -n 'BEGIN { system("echo %s %d", execname, pid); system("date"); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN [echo sh 42]
|[date]
|
|
!dtrace: allowing destructive actions

$ -w -n 'BEGIN { system(""); exit(0); }'
!dtrace: invalid probe specifier ...: in action list: system( ) has an empty format
= 1

$ -x errtags -n 'BEGIN { system("date"); exit(0); }'
!dtrace: could not enable tracing: Destructive actions not allowed
= 1

$ -w -n 'BEGIN { stop(); exit(0); }'
|
!dtrace: allowing destructive actions
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -w -n 'BEGIN { raise(9); exit(0); }'
|
!dtrace: allowing destructive actions
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -w -n 'BEGIN { chill(1000); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: allowing destructive actions

$ -w -n 'BEGIN { chill(600000000); } BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: allowing destructive actions
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -w -n 'BEGIN { breakpoint(); } BEGIN { panic(); } BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: allowing destructive actions
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): illegal operation in action #1
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): illegal operation in action #1

$ -w -q -n 'BEGIN { copyout("abc", 0x405000, 3); copyoutstr("xyz", 0x405004, 4); printf("%s", copyinstr(0x405000)); exit(0) }'
|abccxyz

$ -x errtags -n 'BEGIN { copyout("abc", 0x405000, 3); }'
!dtrace: could not enable tracing: Destructive actions not allowed
= 1

$ -w -n 'BEGIN { raise(); }'
!dtrace: invalid probe specifier ...: in action list: raise( ) takes 1 argument, not 0
= 1

$ -w -n 'BEGIN { chill("a"); }'
!dtrace: invalid probe specifier ...: in action list: chill( ) argument #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'BEGIN { printf(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: printf( ) takes at least 1 argument, not 0
= 1

$ -x errtags -n 'BEGIN { printf("%d %s"); }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_PROTO] in action list: printf( ): conversion #1 (%d) has no argument
= 1

$ -x errtags -n 'BEGIN { x = 1; printf(x); }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_FMT] in action list: printf( ) needs a string constant as its format
= 1

$ -x errtags -n 'BEGIN { trace(1) trace(2) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error (is a ';' missing before it?) near "trace"
= 1

$ -x errtags -n 'BEGIN { trace(`ticks = 2); }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: kernel memory cannot be written
= 1

$ -qn 'BEGIN { this->a = (ipaddr_t *)alloca(4); *this->a = 0x0100007f; this->b = (in6_addr_t *)alloca(16); this->b->s6_addr[15] = 1; printf("%s %s %s %s\n", inet_ntoa(this->a), inet_ntop(AF_INET, this->a), inet_ntoa6(this->b), inet_ntop(AF_INET6, this->b)); exit(0); }'
|127.0.0.1 127.0.0.1 ::1 ::1
|

$ -qn 'BEGIN { p = (int *)alloca(4); *p = 77; i = 3; tracemem(p, 4, 2); tracemem(p, 4, i); tracemem(p, 4, -1); exit(0); }'
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 4d 00                                            M.
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 4d 00 00                                         M..
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 4d 00 00 00                                      M...
|
