# Options (section 13)

$ -x nosuch -n BEGIN
!dtrace: failed to set -x nosuch: Invalid option name
= 1

$ -x quiet=2z -n BEGIN
!dtrace: failed to set -x quiet: Invalid value for specified option
= 1

$ -x bufsize=1q -n BEGIN
!dtrace: failed to set -x bufsize: Invalid value for specified option
= 1

$ -x bufsize -n 'BEGIN { exit(0); }'
!dtrace: could not enable tracing: Enabling exceeds size of buffer
= 1

$ -b 4q -n BEGIN
!dtrace: failed to set -b 4q: Invalid value for specified option
= 1

$ -b 2m -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x bufsize=4 -n 'BEGIN { exit(0) }'
!dtrace: could not enable tracing: Enabling exceeds size of buffer
= 1

$ -x bufsize=16 -n 'BEGIN { trace(execname); exit(0) }'
|
!dtrace: 1 drop on CPU 0

$ -x bufsize=300 -n 'BEGIN { trace(1); trace(execname);} BEGIN { trace(execname);} BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1  sh                               
|  0      1                           :BEGIN 
|
!dtrace: 1 drop on CPU 0

$ -x bufpolicy=ring -x bufsize=100 -n 'fbt:::entry { trace(probefunc == "malloc"); }'
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry         0
|  0     19                     malloc:entry         1
|  0     17                   sys_read:entry         0
|  0     19                     malloc:entry         1
|  0     17                   sys_read:entry         0
|  0     19                     malloc:entry         1
|

$ -x bufpolicy=fill -x bufsize=100 -n 'fbt:::entry { trace(probefunc == "malloc"); } END { trace(5); }'
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry         0
|  0     23                 dofileread:entry         0
|  0     19                     malloc:entry         1
|  0     21                      namei:entry         0
|  0      2                             :END         5
|

$ -x bufpolicy=foo -n BEGIN
!dtrace: failed to set -x bufpolicy: Invalid value for specified option
= 1

$ -x strsize=4 -n 'BEGIN { trace(execname); trace("abcdefgh"); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN     26739 1684234849
|

$ -x strsize=6 -n 'BEGIN { trace(execname); trace("abcdefgh"); printf("%s", "abcdefgh"); trace(strjoin("abc", "def")); exit(0); }'
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): out of scratch space in action #4 at DIF offset 20

$ -x statusrate=100s -x cleanrate=10000hz -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: cleaning rate reduced to 5000 hz
!dtrace: status rate increased to once every 10 seconds

$ -x cleanrate=10m -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: cleaning rate increased to once every 60 seconds

$ -x cleanrate=1ns -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: cleaning rate reduced to 5000 hz

$ -x stackframes=1 -x stackindent=2 -n 'BEGIN { stack(); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|  0xd7ace0200000000
|
|

$ -x ustackframes=1 -n 'BEGIN { ustack(); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              libc.so.7`read+0x8
|
|

$ -x jstackframes=1 -n 'BEGIN { jstack(); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              libc.so.7`read+0x8
|
|

$ -x cpu=1 -q -n 'BEGIN { printf("hi"); exit(0) } END { printf("end"); }'
|

$ -x cpu=0 -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x destructive -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: allowing destructive actions

$ -x destructive=no -n 'BEGIN { system("x"); exit(0) }'
!dtrace: could not enable tracing: Destructive actions not allowed
= 1

$ -x version=1.0 -x errtags -n 'BEGIN { trace(strstr("a", "b")); exit(0) }'
!dtrace: invalid probe specifier ...: [D_FUNC_UNDEF] in action list: undefined function name: strstr
= 1

$ -x version=1.99 -x errtags -n 'BEGIN { exit(0) }'
!dtrace: failed to set -x version: Requested version is not supported by compiler
= 1

$ -x version=foo -n 'BEGIN { exit(0) }'
!dtrace: failed to set -x version: Version is not properly formatted or is too large
= 1

$ -x empty -n ''
!dtrace: no probes matched
= 1

$ -x zdefs -n 'nosuch' -n 'BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -x pspec -n 'int*:'
!dtrace: invalid probe specifier ...: [D_PDESC_ZERO] probe description ::int*: does not match any probes
= 1

$ -x tree=1 -e -n 'BEGIN { trace(1 + 2); }'
!BEGIN
!{
!	trace((1 + 2));
!}

$ -x temporal=no -q -n 'BEGIN { printf("a"); exit(0) }'
|a

$ -x strsize=16 -qn 'BEGIN { x = "a long string, longer than sixteen"; self->y = x; z[1] = x; this->q = x; printf("%s|%d|%s|%s|%s\n", x, strlen(x), self->y, z[1], this->q); exit(0); }'
|a long string, l|16|a long string, l|a long string, l|a long string, l
|

$ -x strsize=16 -qn 'struct p { string s; int after; }; struct p p; BEGIN { p.after = 7; p.s = "sixteen or less"; printf("%s %d %d\n", p.s, p.after, sizeof(p)); exit(0); }'
|sixteen or less 7 260
|

$ -x strsize=1k -qn 'struct p { string s; int after; }; this struct p p; BEGIN { this->p.after = 7; this->p.s = "abc"; printf("%s %d %d %d\n", this->p.s, this->p.after, this->p.s == "abc", sizeof(string)); exit(0); }'
|abc 7 1 1024
|
