# Clauses: order, faults, branches, exit (section 3)

$ -x errtags -n 'BEGIN,END'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|  0      2                             :END 
|

$ -x errtags -n 'BEGIN { exit(2); trace(1); } END { trace(2) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|  0      2                             :END         2
|
= 2

$ -x errtags -n 'BEGIN { exit(2); } BEGIN { trace(3) } END { exit(5); trace(2) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|  0      2                             :END         2
|
= 5

$ -x errtags -n 'BEGIN { exit(257); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
= 1

$ -x errtags -n 'fbt::malloc:entry { trace(1); exit(0); } fbt::malloc:entry { trace(2) } fbt::malloc:return {trace(4);}'
|CPU     ID                    FUNCTION:NAME
|  0     19                     malloc:entry         1
|

$ -x errtags -n 'BEGIN { }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN { ; ; }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'BEGIN { x = 1; } BEGIN { @ = count(); } BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|                1

$ -x errtags -n 'BEGIN { trace(1); trace(*(int *)0); trace(3) } BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #2 at DIF offset 16

$ -x errtags -n 'BEGIN { @a = count(); x = 5; trace(*(int *)0); } BEGIN { trace(x); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         5
|
|                1
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #4 at DIF offset 16

$ -x errtags -n 'BEGIN /*(int *)0/ { trace(1) } BEGIN { exit(0) } ERROR { trace("error"); }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] end of input within the comment opened in line 1
= 1

$ -q -n 'ERROR { printf("%d %d %d %d %x\n", arg1, arg2, arg3, arg4, arg5) } BEGIN { trace(1); trace(2); trace(*(int *)0x10); } BEGIN { exit(0); }'
|2 3 16 1 10
|
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #3 at DIF offset 16

$ -x errtags -n 'ERROR { trace(*(int *)0x10) } BEGIN { trace(1 / (pid - pid)); } BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
!dtrace: 1 error in ERROR probe enabling
!dtrace: error on enabled probe ID 2 (ID 1: dtrace:::BEGIN): divide-by-zero in action #1 at DIF offset 16

$ -q -n 'BEGIN { if (1) { printf("a\n") } else { printf("b\n"); } if (0) printf("c\n"); else printf("d\n"); exit(0) }'
|a
|d
|

$ -q -n 'BEGIN { if (1) if (0) trace("x"); else trace("y"); exit(0); }'
|y

$ -q -s /nonexistent
!dtrace: failed to open /nonexistent: No such file or directory
= 1

$ -x errtags -n 'BEGIN,'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near end of input
= 1

$ -x errtags -n 'BEGIN { exit(0); } extra'
!dtrace: invalid probe specifier ...: [D_PDESC_ZERO] probe description :::extra does not match any probes
= 1

$ -x errtags -n 'BEGIN /1/'
!dtrace: invalid probe specifier ...: [D_SYNTAX] a predicate needs an action in braces after it: { }
= 1

$ -x errtags -n 'BEGIN //'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in predicate: syntax error (D's comments are /* */) near "/"
= 1

$ -x errtags -n 'BEGIN // { }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in predicate: syntax error (D's comments are /* */) near "/"
= 1

$ -x errtags -n 'BEGIN, fbt::malloc:entry /execname == "sh"/ { trace(probename); trace(id); trace(epid); } END'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   BEGIN                                    1        1
|  0     19                     malloc:entry   entry                                   19        2
|  0      2                             :END 
|

# The lowest integer has no quotient by -1: a CPU traps, for the remainder, too.
$ -qn 'BEGIN { x = (int64_t)1 << 63; y = -1; trace(x % y); exit(0); }'
|
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #3 at DIF offset 8
