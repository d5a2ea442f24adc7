# Program text: comments, control lines, macro arguments (section 1)

$ -x errtags -n 'BEGIN { trace(1); } /* c */ /* d */'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n '/* a /* b */ BEGIN'
!dtrace: invalid probe specifier ...: [D_SYNTAX] /* within a comment (comments do not nest)
= 1

> a.d
|// foo
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_SYNTAX] line 1: syntax error (D's comments are /* */) near "/"
= 1

$ -x errtags -n 'BEGIN { trace(1) /* unclosed'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: end of input within the comment opened in line 1
= 1

> a.d
|#!/usr/sbin/dtrace
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|# 
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#ident "foo"
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma ident "foo"
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma nosuch
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#foo
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGCTL_INVAL] line 1: invalid control directive: #foo (does it need -C?)
= 1

> a.d
|# 33 "foo.c"
|BEGIN { trace(x); }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_IDENT_UNDEF] "foo.c", line 33: failed to resolve x: unknown variable name
= 1

> a.d
|#line 33
|BEGIN { trace(x); }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_IDENT_UNDEF] line 33: failed to resolve x: unknown variable name
= 1

> a.d
|#include <foo.h>
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGCTL_INVAL] line 1: invalid control directive: #include (does it need -C?)
= 1

> a.d
|BEGIN { trace(1 + \
| 2); exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         3
|

$ -x errtags -n 'BEGIN { auto = 1; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error (is a ';' missing before it?) near "auto"
= 1

$ -x errtags -n 'BEGIN { break; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error ('break' is not supported: D has no loops) near "break"
= 1

$ -x errtags -n 'BEGIN { while (1) ; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error ('while' is not supported: D has no loops) near "while"
= 1

$ -x errtags -n 'BEGIN { goto x; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error ('goto' is not supported: D has no loops) near "goto"
= 1

$ -x errtags -n 'BEGIN { probe = 1; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error (is a ';' missing before it?) near "probe"
= 1

$ -x errtags -n 'BEGIN { @ = count(); @x = sum(2); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|                1
|                2

$ -x errtags -n 'int* x; BEGIN { x = NULL; trace(x); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 0
|

$ -x errtags -n 'BEGIN / 4 / 2 == 2 / { trace(7); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         7
|

$ -x errtags -n 'BEGIN /1/ /* foo */ { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN / (1/1) / { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -q -n 'BEGIN /1/ { printf("%s %s\n", $$0, "x"); exit(0) }'
|dtrace x
|

$ -q -n 'BEGIN { printf("%s %d %s\n", $$1, $2, $3); exit(0) }' abc 42 "x y"
|abc 42 x y
|

$ -q -n 'BEGIN { printf("%s %s\n", $$1, $1); exit(0) }' "a\tb"
|a	b a	b
|

$ -q -n 'BEGIN { printf("%d\n", $1); exit(0) }' 99999999999999999999
!dtrace: invalid probe specifier ...: in action list: macro argument 99999999999999999999 does not fit in 64 bits
= 1

$ -q -n 'BEGIN { printf("%d\n", $1); exit(0) }' -x errtags 99999999999999999999
!dtrace: invalid probe specifier ...: [D_MACRO_OFLOW] in action list: macro argument 99999999999999999999 does not fit in 64 bits
= 1

$ -q -n 'BEGIN { trace(sizeof($1)); exit(0) }' 5000000000
|8

$ -q -n 'BEGIN { trace(sizeof($1)); exit(0) }' int
|4

$ -q -n '$1:::entry { trace(1);  exit(0)}' fbt
|1

$ -q -n '$1::$2:entry { trace(1);  exit(0)}' fbt malloc
|1

$ -q -n '$$1::malloc:entry { trace(1);  exit(0)}' fbt
|1

$ -q -n '$1_x:::entry { trace(1);  exit(0)}' fbt
!dtrace: invalid probe specifier $1_x:::entry { trace(1);  exit(0)}: probe description fbt_x:::entry does not match any probes (did you mean fbt:::entry?)
= 1

$ -q -n 'f$1t::malloc:entry { trace(1);  exit(0)}' b
|1

$ -x errtags -n '$1$2t:::entry { trace(1);  exit(0)}' f b
!dtrace: invalid probe specifier ...: [D_PDESC_ZERO] probe description f$2t:::entry does not match any probes
= 1

$ -x errtags -n 'BEGIN { trace($1); trace($3); }' 1 2
!dtrace: invalid probe specifier ...: [D_MACRO_UNDEF] in action list: macro argument $3 is not defined: 2 arguments given (option defaultargs allows that)
= 1

$ -x errtags -n 'BEGIN { trace($1) }' 1 2
!dtrace: invalid probe specifier ...: [D_MACRO_UNUSED] extra argument '2' ($2) is never used (option argref allows it)
= 1

$ -x errtags -x defaultargs -n 'BEGIN { trace($1); trace($$1); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         0
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        10: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        20: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        30: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        40: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        50: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        60: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        70: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        80: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        90: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        a0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        b0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        c0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        d0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        e0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        f0: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|
|

$ -x errtags -x argref -n 'BEGIN { exit(0); }' 1 2
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN { trace($foo); }'
!dtrace: invalid probe specifier ...: [D_MACRO_UNDEF] in action list: unknown macro variable $foo
= 1

$ -x errtags -n 'BEGIN { trace($$targe); }'
!dtrace: invalid probe specifier ...: [D_MACRO_UNDEF] in action list: unknown macro variable $$targe (did you mean target?)
= 1

$ -x errtags -n 'BEGIN { trace($$2); }' one
!dtrace: invalid probe specifier ...: [D_MACRO_UNDEF] in action list: macro argument $$2 is not defined: 1 argument given (option defaultargs allows that)
= 1

$ -q -n 'BEGIN { printf("%d %d %d %d %d %d %d %d %d %d %d", $pid, $ppid, $pgid, $sid, $uid, $euid, $gid, $egid, $projid, $taskid, $target); exit(0); }'
|99999 1 99999 99999 0 0 0 0 0 0 0

$ -q -n 'BEGIN { printf("%s %s %s", $$pid, $$target, $$uid); exit(0); }'
|99999 0 0

$ -q -n 'BEGIN { printf("%d %d %d\n", $1, $2, $3); exit(0) }' -- -5 -- 0x10 010
|-5 16 8
|

> a.d
|BEGIN
|{
|	trace(nosuch);
|}
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_IDENT_UNDEF] line 3: failed to resolve nosuch: unknown variable name
= 1

> a.d
|#!/usr/sbin/dtrace -s
|int x;
|BEGIN
|/execname == "sh" &&
|  nosuch/
|{
|	trace(1);
|}
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_IDENT_UNDEF] line 5: failed to resolve nosuch: unknown variable name
= 1

> a.d
|BEGIN
|{
|	trace(1)
|
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_SYNTAX] line 5: end of input before the '{' opened in line 2 is closed
= 1

> a.d
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_SYNTAX] line 1: expected predicate and/or actions following probe description
= 1

> a.d
|BEGIN /1/
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_SYNTAX] line 1: a predicate needs an action in braces after it: { }
= 1

> a.d
|
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_EMPTY] line 2: the program is empty: it has no clause and no declaration
= 1

# Any white space separates the words of a control line; comments may stand on it.

> tabs.d
|#!/usr/sbin/dtrace -s
|#pragma	D	option	quiet
| /* a */ #	pragma ident	"@(#)tabs.d 1.1"
|#ident	"abc"
|#
|#	1	"/tmp/other.d"	1	3
|#line	7	"tabs.d"
|#pragma D  option  strsize=32 /* a
|  comment of two lines */ #pragma D option stackframes=3
|#pragma	D	binding	"1.0"	x
|inline int x = 3;
|BEGIN
|{
|#pragma D option stackindent=1
|	printf("%d %d\n", x, sizeof (execname));
|	exit(0);
|}
$ -x errtags -s tabs.d
|3 32
|

# A module of the kernel by illumos' names; names of illumos for what a thread has.

$ -q -n 'fbt:genunix:sys_read:entry { printf("%d %s %d %d", curthread->t_procp->p_pid, stringof(`unix`proc0.p_comm), curpsinfo->pr_zoneid, curpsinfo->pr_projid); exit(0); }'
|42 kernel 0 0

# A module of the kernel by illumos' names; names of illumos for what a thread has.

$ -q -n 'fbt:genunix:sys_read:entry { printf("%d %s %d", curthread->t_procp->p_pid, stringof(`unix`proc0.p_comm), sizeof (timespec_t)); exit(0); }'
|42 kernel 16
