# Aggregations and their output (sections 11, 16)

$ -x errtags -n 'BEGIN { @ = count(1); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: count( ) takes 0 arguments, not 1
= 1

$ -x errtags -n 'BEGIN { @ = sum(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: sum( ) takes 1 argument, not 0
= 1

$ -x errtags -n 'BEGIN { @ = sum(1, 2); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: sum( ) takes 1 argument, not 2
= 1

$ -x errtags -n 'BEGIN { @ = quantize(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: quantize( ) takes 1 to 2 arguments, not 0
= 1

$ -x errtags -n 'BEGIN { @ = quantize(1, 2, 3); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: quantize( ) takes 1 to 2 arguments, not 3
= 1

$ -x errtags -n 'BEGIN { @ = quantize(1, "a"); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: quantize( ): the increment is not an integer
= 1

$ -x errtags -n 'BEGIN { @ = quantize("a"); }'
!dtrace: invalid probe specifier ...: [D_AGG_SCALAR] in action list: quantize( ) argument #1 is not a scalar
= 1

$ -x errtags -n 'BEGIN { @ = lquantize(1); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: lquantize( ) takes 3 to 5 arguments, not 1
= 1

$ -x errtags -n 'BEGIN { @ = lquantize(1, 0, 10, 1, 1, 1); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: lquantize( ) takes 3 to 5 arguments, not 6
= 1

$ -x errtags -n 'BEGIN { @ = lquantize(1, 0, 10, 1, "a"); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: lquantize( ): the increment is not an integer
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, 3); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: llquantize( ) takes 5 to 6 arguments, not 4
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, pid, 0, 3, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_FACTORTYPE] in action list: llquantize( ): the factor is not an integer constant
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 70000, 0, 3, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_FACTORVAL] in action list: llquantize( ): the factor 70000 is not in 0..65535
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, pid, 3, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_LOWTYPE] in action list: llquantize( ): the low magnitude is not an integer constant
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, pid, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_HIGHTYPE] in action list: llquantize( ): the high magnitude is not an integer constant
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, 3, pid); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_NSTEPTYPE] in action list: llquantize( ): the number of steps is not an integer constant
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, -1, 3, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_LOWVAL] in action list: llquantize( ): the low magnitude -1 is not in 0..65535
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, 70000, 10); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_HIGHVAL] in action list: llquantize( ): the high magnitude 70000 is not in 0..65535
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, 3, 70000); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_NSTEPVAL] in action list: llquantize( ): the number of steps 70000 is not in 0..65535
= 1

$ -x errtags -n 'BEGIN { @ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, 100, 0, 3, 100); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_FACTORMATCH] in action list: @_ has other parameters of llquantize( ) elsewhere
= 1

$ -x errtags -n 'BEGIN { @ = lquantize(1, 0, 10); @ = lquantize(1, 1, 10); }'
!dtrace: invalid probe specifier ...: [D_LQUANT_MATCHBASE] in action list: @_ has other parameters of lquantize( ) elsewhere
= 1

$ -x errtags -n 'BEGIN { @ = lquantize(1, 0, 10); @ = lquantize(1, 0, 11); }'
!dtrace: invalid probe specifier ...: [D_LQUANT_MATCHLIM] in action list: @_ has other parameters of lquantize( ) elsewhere
= 1

$ -x errtags -n 'BEGIN { @[@a] = count(); }'
!dtrace: invalid probe specifier ...: [D_KEY_TYPE] in action list: @_[ ] key #1 cannot be a translation or an aggregation
= 1

$ -x errtags -n 'BEGIN { @[1] = count(); @[1,2] = count(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: @_[ ] has 1 key, not 2
= 1

$ -x errtags -n 'BEGIN { @[1] = count(); @["a"] = count(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: @_[ ] key #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'BEGIN { @[1] = count(); @[2LL] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        1                1
|                2                1

$ -x errtags -n 'BEGIN { @[(void)1] = count(); }'
!dtrace: invalid probe specifier ...: [D_KEY_TYPE] in action list: @_[ ] key #1 cannot be void
= 1

$ -x errtags -n 'BEGIN { @[count()] = count(); }'
!dtrace: invalid probe specifier ...: [D_KEY_TYPE] in action list: @_[ ] key #1 cannot be void
= 1

$ -x errtags -n 'BEGIN { @[`proc0] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 2a 00 00 00 6b 65 72 6e 65 6c 00 00 00 00 00 00  *...kernel......
|        10: 00 00 00 00 00 00 00 00 00 01 10 80 ff ff ff ff  ................
|        20: 07 00 00 00 00 00 00 00 f7 ff ff ff ff ff ff ff  ................
|        30: 61 62 63 00 00 00 00 00 00 00 00 00 00 00 00 00  abc.............
|        40: 80 05 10 80 ff ff ff ff 00 08 10 80 ff ff ff ff  ................
|        50: 09 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        60: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        70: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        80: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        90: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
|        a0: 00 00 00 00 00 00 00 00                          ........
|                1

$ -x errtags -n 'BEGIN { @[`proc0.p_comm] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  kernel                                                            1

$ -x errtags -n 'BEGIN { @[(char)5, (short)-3, -1, -1LL, "x"] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|   5 65533       -1               -1  x                                                                 1

$ -x errtags -n 'BEGIN { @ = quantize(0); @ = quantize(-5); @ = quantize(5); @ = quantize(1 << 20); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|              -8 |                                         0        
|              -4 |@@@@@@@@@@                               1        
|              -2 |                                         0        
|              -1 |                                         0        
|               0 |@@@@@@@@@@                               1        
|               1 |                                         0        
|               2 |                                         0        
|               4 |@@@@@@@@@@                               1        
|               8 |                                         0        
|              16 |                                         0        
|              32 |                                         0        
|              64 |                                         0        
|             128 |                                         0        
|             256 |                                         0        
|             512 |                                         0        
|            1024 |                                         0        
|            2048 |                                         0        
|            4096 |                                         0        
|            8192 |                                         0        
|           16384 |                                         0        
|           32768 |                                         0        
|           65536 |                                         0        
|          131072 |                                         0        
|          262144 |                                         0        
|          524288 |                                         0        
|         1048576 |@@@@@@@@@@                               1        
|         2097152 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = quantize(-5); @ = quantize(-100); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|            -128 |                                         0        
|             -64 |@@@@@@@@@@@@@@@@@@@@                     1        
|             -32 |                                         0        
|             -16 |                                         0        
|              -8 |                                         0        
|              -4 |@@@@@@@@@@@@@@@@@@@@                     1        
|              -2 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = quantize(5, 10); @ = quantize(50, -3); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|               2                     |                     0        
|               4                     |@@@@@@@@@@@@@@@      10       
|               8                     |                     0        
|              16                     |                     0        
|              32                @@@@@|                     -3       
|              64                     |                     0        
|

$ -x errtags -n 'BEGIN { @ = lquantize(5, 0, 10, 2); @ = lquantize(-1, 0, 10, 2); @ = lquantize(10, 0, 10, 2); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|             < 0 |@@@@@@@@@@@@@                            1        
|               0 |                                         0        
|               2 |                                         0        
|               4 |@@@@@@@@@@@@@                            1        
|               6 |                                         0        
|               8 |                                         0        
|           >= 10 |@@@@@@@@@@@@@                            1        
|

$ -x errtags -n 'BEGIN { @ = lquantize(5, 0, 11, 3); @ = lquantize(9, 0, 11, 3); @ = lquantize(10, 0, 11, 3); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|               0 |                                         0        
|               3 |@@@@@@@@@@@@@                            1        
|               6 |                                         0        
|            >= 9 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        
|

$ -x errtags -n 'BEGIN { @ = lquantize(5, -10, 10); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|               4 |                                         0        
|               5 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|               6 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = llquantize(0, 10, 0, 2, 10); @ = llquantize(5, 10, 0, 2, 10); @ = llquantize(55, 10, 0, 2, 10);@ = llquantize(555, 10, 0, 2, 10);@ = llquantize(5555, 10, 0, 2, 10); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|             < 1 |@@@@@@@@                                 1        
|               1 |                                         0        
|               2 |                                         0        
|               3 |                                         0        
|               4 |                                         0        
|               5 |@@@@@@@@                                 1        
|               6 |                                         0        
|               7 |                                         0        
|               8 |                                         0        
|               9 |                                         0        
|              10 |                                         0        
|              20 |                                         0        
|              30 |                                         0        
|              40 |                                         0        
|              50 |@@@@@@@@                                 1        
|              60 |                                         0        
|              70 |                                         0        
|              80 |                                         0        
|              90 |                                         0        
|             100 |                                         0        
|             200 |                                         0        
|             300 |                                         0        
|             400 |                                         0        
|             500 |@@@@@@@@                                 1        
|             600 |                                         0        
|             700 |                                         0        
|             800 |                                         0        
|             900 |                                         0        
|         >= 1000 |@@@@@@@@                                 1        
|

$ -x errtags -n 'BEGIN { @ = llquantize(55, 10, 1, 3, 20); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|              50 |                                         0        
|              55 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|              60 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = llquantize(5, 2, 3, 6, 8); @ = llquantize(33, 2, 3, 6, 8); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|             < 8 |@@@@@@@@@@@@@@@@@@@@                     1        
|               8 |                                         0        
|              10 |                                         0        
|              12 |                                         0        
|              14 |                                         0        
|              16 |                                         0        
|              20 |                                         0        
|              24 |                                         0        
|              28 |                                         0        
|              32 |@@@@@@@@@@@@@@@@@@@@                     1        
|              40 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = quantize(5); clear(@); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|              -1 |                                         0        
|               0 |                                         0        
|               1 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = lquantize(5, 0, 10); clear(@); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|             < 0 |                                         0        
|               0 |                                         0        
|               1 |                                         0        
|

$ -x errtags -n 'BEGIN { @ = llquantize(5, 10, 0, 2, 10); clear(@); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|           value  ------------- Distribution ------------- count    
|             < 1 |                                         0        
|               1 |                                         0        
|

$ -x agghist -n 'BEGIN { @a["x"] = count(); @a["yy"] = sum(3); exit(0); }'
!dtrace: invalid probe specifier ...: in action list: aggregation redefined: @a is count( ), not sum( )
= 1

$ -x agghist -n 'BEGIN { @a["x"] = sum(1); @a["yy"] = sum(3); @b = count(); @c[1, "x"] = count(); @c[2, "y"] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key  ------------- Distribution ------------- count    
|                x |@@@@@@@@@@                               1        
|               yy |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        
|
|           value  ------------- Distribution ------------- count    
| |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|
|                       key  ------------- Distribution ------------- count    
|        1                x |@@@@@@@@@@@@@@@@@@@@                     1        
|        2                y |@@@@@@@@@@@@@@@@@@@@                     1        

$ -x agghist -n 'BEGIN { @a["x"] = sum(-1); @a["yy"] = sum(3); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key  ------------- Distribution ------------- count    
|                x                @@@@@|                     -1       
|               yy                     |@@@@@@@@@@@@@@@      3        

$ -x aggpack -n 'BEGIN { @a["x"] = quantize(1); @a["x"] = quantize(100); @a["y"] = quantize(-4); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key  min .-------------. max  | count
|                y   -8 : █           : 128  | 1
|                x   -8 :     ▅     ▅ : 128  | 2

$ -x aggpack -n 'BEGIN { @a["x"] = lquantize(1, 0, 10); @a["x"] = lquantize(7, 0, 10); @a["x"] = lquantize(7, 0, 10); @b["x"] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key     min .------------. max      | count
|                x     < 0 :  ▃     ▆   : >= 10    | 3
|  x                                                                 1

$ -x aggzoom -n 'BEGIN { @a["x"] = quantize(1); @a["x"] = quantize(100); @a["x"] = quantize(100); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  x                                                 
|           value  ------------- Distribution ------------- count    
|               0 |                                         0        
|               1 |@@@@@@@@@@@@@@@@@@@                      1        
|               2 |                                         0        
|               4 |                                         0        
|               8 |                                         0        
|              16 |                                         0        
|              32 |                                         0        
|              64 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   2        
|             128 |                                         0        
|

$ -x encoding=utf8 -n 'BEGIN { @a["x"] = quantize(1); @a["x"] = quantize(100); @a["x"] = quantize(100); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  x                                                 
|           value  ------------- Distribution ------------- count    
|               0 |                                         0        
|               1 |█████████████▎                           1        
|               2 |                                         0        
|               4 |                                         0        
|               8 |                                         0        
|              16 |                                         0        
|              32 |                                         0        
|              64 |██████████████████████████▋              2        
|             128 |                                         0        
|

$ -x encoding=utf8 -x aggpack -n 'BEGIN { @a["x"] = quantize(1); @a["x"] = quantize(100); @a["x"] = quantize(100); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key  min .---------. max  | count
|                x    0 : ▃     ▆ : 128  | 3

$ -x errtags -n 'BEGIN { @a["z"] = sum(1); @a["a"] = sum(2); @a["b"] = sum(1); @b[3] = sum(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  b                                                                 1
|  z                                                                 1
|  a                                                                 2
|        3                1

$ -x aggsortkey -n 'BEGIN { @a["z"] = sum(1); @a["a"] = sum(2); @a["b"] = sum(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  a                                                                 2
|  b                                                                 1
|  z                                                                 1

$ -x aggsortrev -n 'BEGIN { @a["z"] = sum(1); @a["a"] = sum(2); @a["b"] = sum(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  a                                                                 2
|  z                                                                 1
|  b                                                                 1

$ -x aggsortkey -x aggsortrev -n 'BEGIN { @a["z"] = sum(1); @a["a"] = sum(2); @a["b"] = sum(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  z                                                                 1
|  b                                                                 1
|  a                                                                 2

$ -x aggsortkey -x aggsortkeypos=1 -n 'BEGIN { @a["z", 1] = sum(1); @a["a", 2] = sum(2); @a["b", 0] = sum(1); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  b                                                         0                1
|  z                                                         1                1
|  a                                                         2                2

$ -x aggsortpos=1 -q -n 'BEGIN { @a["x"] = sum(1); @a["y"] = sum(2); @b["x"] = sum(9); @b["y"] = sum(3); printa(@a, @b); exit(0); }'
|
|  y                                                                 2                3
|  x                                                                 1                9
|

$ -x errtags -n 'BEGIN { @a[-1] = count(); @a[1] = count(); @a[5] = count(); @a[-7] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        1                1
|        5                1
|       -7                1
|       -1                1

$ -x errtags -n 'BEGIN { @a["x"] = avg(5); @a["x"] = avg(2); @a["y"] = avg(-7); @a["y"] = avg(-8); normalize(@a, 2); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  y                                                                -3
|  x                                                                 1

$ -x errtags -n 'BEGIN { @a["x"] = quantize(5); @a["x"] = quantize(5); @a["y"] = quantize(1); normalize(@a, 2); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|  y                                                 
|           value  ------------- Distribution ------------- count    
|               0 |                                         0        
|               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 0        
|               2 |                                         0        
|
|  x                                                 
|           value  ------------- Distribution ------------- count    
|               2 |                                         0        
|               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
|               8 |                                         0        
|

$ -x errtags -n 'BEGIN { @a[1]; }'
!dtrace: invalid probe specifier ...: [D_AGG_NULL] in action list: @a alone does nothing: assign an aggregating function
= 1

$ -x errtags -n 'BEGIN { @a[1] = 5; }'
!dtrace: invalid probe specifier ...: [D_AGG_FUNC] in action list: @a must be assigned the result of an aggregating function, such as count( )
= 1

$ -x errtags -n 'BEGIN { @a = strlen("x"); }'
!dtrace: invalid probe specifier ...: [D_AGG_FUNC] in action list: @a must be assigned the result of an aggregating function, such as count( )
= 1

$ -x errtags -n 'BEGIN { @a += count(); }'
!dtrace: invalid probe specifier ...: [D_AGG_FUNC] in action list: @a must be assigned the result of an aggregating function, such as count( )
= 1

$ -x errtags -n 'BEGIN { @a++; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -n 'BEGIN { @a = @b; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @b: no such aggregation
= 1

$ -x errtags -n 'BEGIN { x = count(); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: void cannot be assigned
= 1

$ -x errtags -n 'BEGIN { count(); }'
!dtrace: invalid probe specifier ...: [D_CG_EXPR] in action list: count( ) can only be assigned to an aggregation: @ = count(...)
= 1

$ -x errtags -n 'BEGIN { @a[] = count(); }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] in action list: syntax error near "]"
= 1

$ -x errtags -n 'BEGIN { @a.x = count(); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: void cannot be assigned
= 1

$ -x errtags -n 'BEGIN { @a = nosuch(1); }'
!dtrace: invalid probe specifier ...: [D_FUNC_UNDEF] in action list: undefined function name: nosuch
= 1

$ -x errtags -n 'BEGIN { @a = sum(`proc0); }'
!dtrace: invalid probe specifier ...: [D_AGG_SCALAR] in action list: sum( ) argument #1 is not a scalar
= 1

$ -x errtags -n 'BEGIN { @a = sum(&`proc0); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|      -2146434560

$ -x errtags -n 'BEGIN { @a = min(5), @b = max(4); exit(0); }'
!dtrace: invalid probe specifier ...: [D_CG_EXPR] in action list: an assignment to an aggregation must be a statement of its own
= 1

$ -x errtags -n 'BEGIN { @a = count(); @a = count(); exit(0); } END { printa(@a); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|  0      2                             :END 
|                2
|
|

$ -x errtags -n 'BEGIN { @a = count(); } END { printa(@a); @a = count(); }'
|CPU     ID                    FUNCTION:NAME
|  0      2                             :END 
|                2
|
|

$ -x aggsize=400 -n 'BEGIN { @a[1] = count(); @a[2] = count(); @a[3] = count(); @a[4] = count(); @a[5] = count(); @a[6] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        1                1
|        2                1
|        3                1
|        4                1
|        5                1
|        6                1

$ -x aggsize=400 -x droptags -n 'BEGIN { @a[1] = count(); @a[2] = count(); @a[3] = count(); @a[4] = count(); @a[5] = count(); @a[6] = count(); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|        1                1
|        2                1
|        3                1
|        4                1
|        5                1
|        6                1

# An aggregation is shown, cleared and cut below its first assignment; keys after its name mean nothing there.
$ -x errtags -q -n 'BEGIN { printa(@a); } END { @a = count(); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -q -n 'BEGIN { clear(@a[1]); }'
!dtrace: invalid probe specifier ...: [D_CLEAR_AGGBAD] in action list: undefined aggregation: @a
= 1

$ -q -n 'BEGIN { @a[1] = count(); @a[2] = count(); printa("%d %@d\n", @a[9]); clear(@a[7]); exit(0); }'
|1 1
|2 1
|

$ -x aggpack -n 'BEGIN { @a["x"] = quantize(5); @a["x"] = quantize(900); @a["y"] = quantize(7, 3); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|
|
|              key  min .----------. max  | count
|                y    2 : █        : 1024 | 3
|                x    2 : ▅      ▅ : 1024 | 2
