# printf and printa (section 14)

$ -q -n 'BEGIN { printf("[%d] [%i] [%u] [%o] [%x] [%X]\n", -1, -1, -1, 8, 255, 255); exit(0) }'
|[-1] [-1] [4294967295] [10] [ff] [FF]
|

$ -q -n 'BEGIN { printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%'\''d] [%.3d] [%8.3d] [%#x] [%#o]\n", 42, 42, 42, 42, 42, 1234567, 5, 5, 255, 8); exit(0) }'
|[   42] [42   ] [00042] [+42] [ 42] [1234567] [005] [     005] [0xff] [010]
|

$ -q -n 'BEGIN { printf("[%*d] [%-*d] [%*d] [%.*d] [%*.*s]\n", 6, 42, 6, 42, -6, 42, 4, 7, 8, 3, "abcdef"); exit(0) }'
|[    42] [42    ] [42    ] [0007] [     abc]
|

$ -q -n 'BEGIN { printf("[%s] [%10s] [%-10s] [%.2s] [%10.2s] [%S]\n", "abc", "abc", "abc", "abc", "abc", "a\tb\"c\001"); exit(0) }'
|[abc] [       abc] [abc       ] [ab] [        ab] [a\tb\"c\001\0]
|

$ -q -n 'BEGIN { printf("[%c] [%C] [%c] [%5c] [%-5c]\n", '\''a'\'', '\''\n'\'', (char)66, '\''x'\'', '\''y'\''); exit(0) }'
|[a] [\n] [B] [    x] [y    ]
|

$ -q -n 'BEGIN { printf("[%p] [%p] [%?p] [%?x]\n", &`proc0, 5, &`proc0, 10); exit(0) }'
|[ffffffff80100200] [5] [ffffffff80100200] [               a]
|

$ -q -n 'BEGIN { printf("[%a] [%a] [%a] [%20a]\n", &`proc0, 0xffffffff80001004, 5, `proc0.p_textvp); exit(0) }'
|[kernel`proc0] [kernel`sys_read+0x4] [0x5] [kernel`rootvnode+0x100]
|

$ -x errtags -n 'BEGIN { printf("%A", 1); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %A
!	 prototype: pointer or integer (with -p or -c), or usym()
!	  argument: int
= 1

$ -q -n 'struct s { int n; char c[4]; }; BEGIN { printf("[%p] [%a]\n", ((struct s *)&`proc0)->c, ((struct s *)8)->c); exit(0) }'
|[ffffffff80100204] [0xc]
|

$ -q -n 'BEGIN { printf("[%a] [%A]\n", sym(0xffffffff80001004), usym(0x401004)); exit(0) }'
|[kernel`sys_read+0x4] [sh`main+0x4]
|

$ -q -n 'BEGIN { printf("%k", stack()); exit(0) }'
|
|0xd7ace0200000000
|kernel`sys_read+0x10
|kernel`syscall+0x20
|zfs.ko`zfs_read+0x4
|

$ -q -n 'BEGIN { printf("[%Y] [%T]\n", walltimestamp, walltimestamp); printf("%Y\n", 0ull); printf("%30Y|\n", walltimestamp); exit(0) }'
|[2023 Nov 14 22:13:20] [Tue, 14 Nov 2023 22:13:20 UTC]
|1970 Jan  1 00:00:00
|          2023 Nov 14 22:13:20|
|

$ -x errtags -n 'BEGIN { printf("%Y\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %Y
!	 prototype: int64_t
!	  argument: int
= 1

$ -q -n 'BEGIN { printf("[%P] [%P]\n", (uint16_t)80, (uint16_t)9999); printf("[%I]\n", "127.0.0.1"); exit(0) }'
|[80] [9999]
|[127.0.0.1]
|

$ -x errtags -n 'BEGIN { printf("[%P]\n", 80); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %P
!	 prototype: uint16_t
!	  argument: int
= 1

$ -q -n 'BEGIN { printf("%hd %hu %hx %ld %lu %lx %lld %llu %llx\n", (short)-1, (ushort_t)65535, (short)-1, -1L, 1UL, -1L, -1LL, 1ULL, -1LL); exit(0) }'
|-1 65535 ffff -1 1 ffffffffffffffff -1 1 ffffffffffffffff
|

$ -x errtags -n 'BEGIN { printf("%hd\n", 1); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %hd
!	 prototype: short
!	  argument: int
= 1

$ -x errtags -n 'BEGIN { printf("%ld\n", 1); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %ld
!	 prototype: long
!	  argument: int
= 1

$ -x errtags -n 'BEGIN { printf("%lld\n", 1L); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %lld
!	 prototype: long long
!	  argument: long
= 1

$ -x errtags -n 'BEGIN { printf("%lld\n", 1LL); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 1
|
|

$ -x errtags -n 'BEGIN { printf("%llx\n", timestamp); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN f4240
|
|

$ -x errtags -n 'BEGIN { printf("%lu\n", timestamp); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 1000000
|
|

$ -x errtags -n 'BEGIN { printf("%llu\n", timestamp); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %llu
!	 prototype: unsigned long long
!	  argument: uint64_t
= 1

$ -x errtags -n 'BEGIN { printf("%d\n", "abc"); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %d
!	 prototype: char, short, int, long, or long long
!	  argument: string
= 1

$ -x errtags -n 'BEGIN { printf("%s\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %s
!	 prototype: char [] or string (or use stringof)
!	  argument: int
= 1

$ -x errtags -n 'BEGIN { printf("%s\n", `proc0.p_textvp); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %s
!	 prototype: char [] or string (or use stringof)
!	  argument: struct vnode *
= 1

$ -x errtags -n 'BEGIN { printf("%s\n", (char *)`proc0.p_comm); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %s
!	 prototype: char [] or string (or use stringof)
!	  argument: char *
= 1

$ -x errtags -n 'BEGIN { printf("%d\n", &`proc0); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %d
!	 prototype: char, short, int, long, or long long
!	  argument: struct proc *
= 1

$ -x errtags -n 'BEGIN { printf("%x\n", &`proc0); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %x
!	 prototype: char, short, int, long, or long long
!	  argument: struct proc *
= 1

$ -x errtags -n 'BEGIN { printf("%p\n", "abc"); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %p
!	 prototype: pointer or integer
!	  argument: string
= 1

$ -x errtags -n 'BEGIN { printf("%c\n", 5LL); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %c
!	 prototype: char, short, or int
!	  argument: long long
= 1

$ -x errtags -n 'BEGIN { printf("%f\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %f
!	 prototype: float, double, or long double
!	  argument: int
= 1

$ -x errtags -n 'BEGIN { printf("%n\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: format conversion #1 is undefined: %n
= 1

$ -x errtags -n 'BEGIN { printf("%5\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: format conversion #1 is undefined: %
!
= 1

$ -x errtags -n 'BEGIN { printf("%", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: format conversion #1 name expected before end of format string
= 1

$ -x errtags -n 'BEGIN { printf("%%", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_EXTRA] in action list: printf( ): 1 argument more than the format has conversions
= 1

$ -q -n 'BEGIN { printf("100%%\n"); printf("%5%|\n"); exit(0) }'
!dtrace: invalid probe specifier ...: in action list: format conversion #1 cannot be combined with other format flags: %%
= 1

$ -x errtags -n 'BEGIN { printf("%1$d\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: format conversion #1 uses unsupported positional format (%n$)
= 1

$ -x errtags -n 'BEGIN { printf("%.3.4d\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: format conversion #1 has more than one '.' specified
= 1

$ -x errtags -n 'BEGIN { printf("%*d\n", "a", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_DYN_TYPE] in action list: printf( ) argument #2: a width is an int, not string
= 1

$ -x errtags -n 'BEGIN { printf("%*d\n", 5LL, 5); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN     5
|
|

$ -x errtags -n 'BEGIN { printf("%@d\n", 5); exit(0) }'
!dtrace: invalid probe specifier ...: [D_PRINTF_AGG_CONV] in action list: printf( ): %@d is for printa( ) only
= 1

$ -x errtags -n 'BEGIN { printf("hello"); printf("world\n"); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN helloworld
|
|

$ -x errtags -n 'BEGIN { printf("a %d\n", 1), printf("b"); exit(0) }'
!dtrace: invalid probe specifier ...: [D_OP_ACT] in action list: printf( ) is an action: operator , needs values
= 1

$ -q -n 'BEGIN { printf("%d %d %d %d\n", (char)-1, (uint8_t)-1, (short)-1, (unsigned short)-1); printf("%x %x %u %o\n", (char)-1, (short)-1, (char)-1, (char)-1); exit(0) }'
|-1 255 -1 65535
|ff ffff 255 377
|

$ -q -n 'BEGIN { printf("%d %u\n", -1LL, -1LL); printf("%d\n", 18446744073709551615u); printf("%i\n", 18446744073709551615u); exit(0) }'
|-1 18446744073709551615
|18446744073709551615
|-1
|

$ -q -n 'BEGIN { printf("%s|%s|%s\n", execname, probename, `proc0.p_comm); printf("%s\n", `version); printf("%.3s|%-12s|\n", `version, `version); exit(0) }'
|sh|BEGIN|kernel
|Scene 1.0
|Sce|Scene 1.0   |
|

$ -q -n 'BEGIN { printf("%wc%ws\n", 5, "a"); exit(0) }'
!dtrace: invalid probe specifier ...: in action list: printf( ) argument #3 is incompatible with conversion #2 prototype:
!	conversion: %ws
!	 prototype: wchar_t []
!	  argument: string
= 1

$ -q -n 'BEGIN { printf("%lc%ls\n", 5, "a"); exit(0) }'
!dtrace: invalid probe specifier ...: in action list: printf( ) argument #3 is incompatible with conversion #2 prototype:
!	conversion: %ls
!	 prototype: wchar_t []
!	  argument: string
= 1

$ -q -n 'BEGIN { printf("%s\n", probefunc); printf("[%s]\n", ""); printf("%d %s %d\n", 1, "x", 2); exit(0) }'
|
|[]
|1 x 2
|

$ -q -n 'BEGIN { printf("\a\b\f\v\r\\\"\'\''\x41\102|%s\n", "x\ny"); exit(0) }'
|\"\'AB|x
|y
|

$ -q -n 'BEGIN { printf("%d", VREG); exit(0) }'
!dtrace: invalid probe specifier ...: in action list: failed to resolve VREG: unknown variable name
= 1

$ -q -n 'BEGIN { printf("%d %s\n", `rootvnode.v_type, stringof(`rootvnode.v_name)); printf("%d\n", `rootvnode.v_kind); exit(0) }'
|5 root
|-3
|

$ -q -n 'BEGIN { printf("%s", "a" == "a" ? "yes" : "no"); exit(0) }'
|yes

$ -q -n 'BEGIN { printf("%-20s|%20s|%-+5d|%x\n", "left", "right", 5, pid); exit(0); }'
|left                |               right|+5   |2a
|

$ -q -n 'BEGIN { @a["x", 1] = count(); @a["y", 2] = count(); printa("%s %d %@d\n", @a); printa("%-10s|%@8d|\n", @a); printa("%@d only\n", @a); printa("%s\n", @a); exit(0); }'
|x 1 1
|y 2 1
|x         |       1|
|y         |       1|
|1 only
|1 only
|x
|y
|

$ -q -n 'BEGIN { @a["x", 1] = count(); printa("%d %s %@d\n", @a); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) key #1 is incompatible with conversion #1 prototype:
!	conversion: %d
!	 prototype: char, short, int, long, or long long
!	  argument: string
= 1

$ -q -n 'BEGIN { @a["x", 1] = count(); printa("%s %d %d %@d\n", @a); }'
!dtrace: invalid probe specifier ...: in action list: printa( ): conversion #3 (%d) has no key
= 1

$ -q -n 'BEGIN { @a["x"] = count(); @b["x"] = sum(10); @b["y"] = sum(20); @c["x"] = avg(4); printa(@a, @b, @c); printa("%s %@d %@d %@d\n", @a, @b, @c); printa("%s %@d %@d\n", @a, @b, @c); printa("%s %@d %@d\n", @b); exit(0); }'
|
|  y                                                                 0               20                0
|  x                                                                 1               10                4
|y 0 20 0
|x 1 10 4
|y 0 20
|x 1 10
|x 10 10
|y 20 20
|

$ -q -n 'BEGIN { @a["x"] = quantize(10); printa("%s: %@d\n", @a); printa("%s: %@10u\n", @a); exit(0); }'
|x: 
|           value  ------------- Distribution ------------- count    
|               4 |                                         0        
|               8 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|              16 |                                         0        
|
|x: 
|           value  ------------- Distribution ------------- count    
|               4 |                                         0        
|               8 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|              16 |                                         0        
|
|

$ -q -n 'BEGIN { @a = count(); printa("count: %@d\n", @a); printa("%@5d|%@-5d|%@x|%@u|%@i\n", @a); exit(0); }'
|count: 1
|    1|1    |1|1|1
|

$ -q -n 'BEGIN { @[stack(2)] = count(); printa("%k %@d\n", @); exit(0); }'
|
|0xd7ace0200000000
|kernel`sys_read+0x10
| 1
|

$ -q -n 'BEGIN { @[stack(2)] = count(); @u[ustack()] = count(); @s[sym(0xffffffff80001004), mod(0xffffffff80001004)] = count(); @t[usym(0x401004), umod(0x402008), uaddr(0x401004)] = sum(2); exit(0); }'
|
|
|              0xd7ace0200000000
|              kernel`sys_read+0x10
|                1
|
|              libc.so.7`read+0x8
|              sh`main+0x10
|                1
|  kernel`sys_read                                     kernel                                                            1
|  sh`main                                             libc.so.7                                           sh`main+0x4                                                       2

$ -q -n 'BEGIN { @s[sym(0xffffffff80001004)] = count(); @f[func(0xffffffff80001004)] = count(); printa("%a %@d\n", @s); printa("%A %@d\n", @s); exit(0); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) key #1 is incompatible with conversion #1 prototype:
!	conversion: %A
!	 prototype: pointer or integer (with -p or -c), or usym()
!	  argument: _symaddr
= 1

$ -q -n 'BEGIN { printa("%d\n"); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) has a format, but no aggregation
= 1

$ -q -n 'BEGIN { printa(); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) takes at least 1 argument, not 0
= 1

$ -q -n 'BEGIN { printa(5); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) argument #1 is not an aggregation
= 1

$ -q -n 'BEGIN { printa("x", 5); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) argument #2 is not an aggregation
= 1

$ -q -n 'BEGIN { @a = count(); printa("", @a); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) has an empty format
= 1

$ -q -n 'BEGIN { @a = count(); } BEGIN { printa(@a); exit(0); }'
|
|                1
|

$ -q -n 'BEGIN { @a[1] = count(); printa(@a); clear(@a); printa(@a); trunc(@a); printa(@a); exit(0); }'
|
|        1                1
|
|        1                0
|
|

$ -q -n 'BEGIN { @a[1] = count(); printa("%s", @a); exit(0); }'
!dtrace: invalid probe specifier ...: in action list: printa( ) key #1 is incompatible with conversion #1 prototype:
!	conversion: %s
!	 prototype: char [] or string (or use stringof)
!	  argument: int
= 1

$ -q -n 'BEGIN { @a = max(-5); @b = min(-5); @c = avg(-5); @c = avg(-6); @d = stddev(5); @d = stddev(9); @e = sum(-5); exit(0) }'
|
|               -5
|               -5
|               -5
|                2
|               -5

$ -q -n 'BEGIN { @a = max((uint64_t)-5); @b = count(); @b = count(); printa("%@d %@u %@x\n", @a); printa("%@d\n", @b); exit(0) }'
|-5 18446744073709551611 fffffffffffffffb
|2
|

# The value of an aggregation is an integer of 64 bits for every conversion that takes one.
$ -qn 'BEGIN { @ = sum(1700000000000000000); printa("%@Y|%@T|%@20x|%@a|%@p\n", @); exit(0); }'
|2023 Nov 14 22:13:20|Tue, 14 Nov 2023 22:13:20 UTC|    17979cfe362a0000|0x17979cfe362a0000|17979cfe362a0000
|
