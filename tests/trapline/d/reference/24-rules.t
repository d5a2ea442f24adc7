# What scripts of others found to differ from libdtrace, line by line; each heading is a rule.

# 1: any white space separates the words of a control line

> a.d
|#pragma	D	option	quiet
|#pragma	ident	"x"
|#pragma 	 D   option  strsize=33
|BEGIN { printf("%d\n", sizeof(execname)); exit(0); }
$ -x errtags -s a.d
|33
|

# 2: tracing continues until exit(), whatever the guest does

$ -x errtags -q -n 'tick-1ms { i++; } tick-1ms /i == 3/ { printf("%d\n", i); exit(0); }'
|3
|

# 3: a constant ?: is folded, and the branch not chosen is never checked

$ -x errtags -q -n 'inline int OPT = 1; BEGIN { OPT ? printf("x\n") : 1; exit(0); }'
|x
|

$ -x errtags -q -n 'inline int OPT = 1; BEGIN { OPT ? @a = count() : 1; exit(0); }'
|
|                1

$ -q -n 'BEGIN { $1 ? printf("yes\n") : nosuch(); exit(0); }' 7
|yes
|

$ -x errtags -q -n 'int OPT; BEGIN { OPT ? printf("x") : 1; exit(0); }'
!dtrace: invalid probe specifier ...: [D_OP_ACT] in action list: printf( ) is an action: operator ?: needs values
= 1

# 4: unix and genunix are the kernel; the types of illumos

$ -x errtags -q -n 'fbt:unix:sys_read:entry, fbt:genunix:sys_read:entry { trace(sizeof (boolean_t)); trace(sizeof (dev_t)); trace(sizeof (hrtime_t)); trace(sizeof (timespec_t)); exit(0); }'
|48816

# 5: aggregations

$ -x errtags -q -n 'BEGIN { trace(@a + 3); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -q -n 'BEGIN { @a; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve @a: no such aggregation
= 1

$ -x errtags -q -n 'BEGIN { @b[@a]; }'
!dtrace: invalid probe specifier ...: [D_KEY_TYPE] in action list: @b[ ] key #1 cannot be a translation or an aggregation
= 1

$ -x errtags -q -n 'BEGIN { @a = count(); trunc(@a, @a); }'
!dtrace: invalid probe specifier ...: [D_TRUNC_SCALAR] in action list: trunc( ) argument #2 is not a scalar
= 1

$ -x errtags -q -n 'BEGIN { @a = count(); printf("%d", @a); }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %d
!	 prototype: char, short, int, long, or long long
!	  argument: <DYN>
= 1

$ -x errtags -q -n 'BEGIN { @c["x"] = foo(); }'
!dtrace: invalid probe specifier ...: [D_FUNC_UNDEF] in action list: undefined function name: foo
= 1

$ -x errtags -q -n 'BEGIN { @c[0][2] = tick-1(); }'
!dtrace: invalid probe specifier ...: [D_FUNC_IDENT] in action list: only a name can be called
= 1

$ -x errtags -q -n 'BEGIN { @ = lquantize(1, 0, 100, 10); @ = lquantize(1, 1, 200, 20); }'
!dtrace: invalid probe specifier ...: [D_LQUANT_MATCHBASE] in action list: @_ has other parameters of lquantize( ) elsewhere
= 1

$ -x errtags -q -n 'BEGIN { @ = lquantize(1, 0, 100, 10); @ = lquantize(1, 0, 200, 20); }'
!dtrace: invalid probe specifier ...: [D_LQUANT_MATCHLIM] in action list: @_ has other parameters of lquantize( ) elsewhere
= 1

$ -x errtags -q -n 'BEGIN { @ = lquantize(1, 0, 100, 10); @ = lquantize(1, 0, 100, 20); }'
!dtrace: invalid probe specifier ...: [D_LQUANT_MATCHSTEP] in action list: @_ has other parameters of lquantize( ) elsewhere
= 1

$ -x errtags -q -n 'BEGIN { @ = lquantize("s", 0, 100, 10); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: lquantize( ) argument #1 is incompatible with its prototype: int64_t wanted, string given
= 1

$ -x errtags -q -n 'BEGIN { (@a = count()) = count(); }'
!dtrace: invalid probe specifier ...: [D_OP_LVAL] in action list: operator =: an assignment to an aggregation has no value
= 1

# 6: declarations

$ -x errtags -q -n 'self this int x; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_CLASS] this cannot be combined with another class
= 1

$ -x errtags -q -n 'this self int x; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_CLASS] self cannot be combined with another class
= 1

$ -x errtags -q -n 'int f(int a[int]); BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_TYPE] a parameter cannot be an associative array
= 1

$ -x errtags -q -n 'enum a { X }; enum b { X }; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] X is defined already
= 1

$ -x errtags -q -n 'struct { int trace(); } x; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDOBJ] member trace cannot be int (void)
= 1

$ -x errtags -q -n 'typedef unknown new_t; BEGIN { }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error (is a ';' missing before it?) near "new_t"
= 1

> a.d
|struct o { int a; };
|struct o
|{ int b; };
|BEGIN { }
$ -x errtags -q -s a.d
!dtrace: failed to compile script ...: [D_DECL_TYPERED] line 2: struct o is defined already
= 1

$ -x errtags -q -n 'BEGIN { (long short)0; }'
!dtrace: invalid probe specifier ...: [D_UNKNOWN] in action list: 'long short' is not a type
= 1

# 7: types are checked before code is generated, bottom up

$ -x errtags -q -n 'BEGIN { progenyof(trace()); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: trace( ) takes 1 argument, not 0
= 1

$ -x errtags -q -n 'BEGIN { stringof(trace(0)); }'
!dtrace: invalid probe specifier ...: [D_STRINGOF_TYPE] in action list: void cannot be made a string
= 1

$ -x errtags -q -n 'BEGIN { q -= trace(0); }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: q has not been declared or assigned
= 1

$ -x errtags -q -n 'BEGIN { printf("%s", printf("t")); }'
!dtrace: invalid probe specifier ...: [D_PRINTF_ARG_TYPE] in action list: printf( ) argument #2 is incompatible with conversion #1 prototype:
!	conversion: %s
!	 prototype: char [] or string (or use stringof)
!	  argument: void
= 1

$ -x errtags -q -n 'BEGIN { 1 + -trace(0); }'
!dtrace: invalid probe specifier ...: [D_OP_ARITH] in action list: operator - needs an arithmetic operand, not void
= 1

$ -x errtags -q -n 'BEGIN { 1 + trace(0); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: operator + cannot take int and void
= 1

$ -x errtags -q -n 'BEGIN { x = 1; (char)trace(x); }'
!dtrace: invalid probe specifier ...: [D_CAST_INVAL] in action list: void cannot be cast to char
= 1

$ -x errtags -q -n 'BEGIN { c = 1; c ? printf("x") : trace(); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: trace( ) takes 1 argument, not 0
= 1

$ -x errtags -q -n 'BEGIN { x = trace(0); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: void cannot be assigned
= 1

$ -x errtags -q -n 'BEGIN { x = stack(); }'
!dtrace: invalid probe specifier ...: [D_CG_EXPR] in action list: stack( ) gives no value: it can only be a statement of its own
= 1

$ -x errtags -q -n 'BEGIN { (void)trace(0); }'
!dtrace: invalid probe specifier ...: [D_CG_EXPR] in action list: trace( ) gives no value: it can only be a statement of its own
= 1

$ -x errtags -q -n 'BEGIN { trace(trace(0) == trace(1)); }'
!dtrace: invalid probe specifier ...: [D_CG_EXPR] in action list: trace( ) gives no value: it can only be a statement of its own
= 1

# 8: arithmetic on void, arguments that do not fit, names that are not there

$ -x errtags -q -n 'int p; BEGIN { p -= alloca(10); }'
!dtrace: invalid probe specifier ...: [D_OP_VFPTR] in action list: operator -= needs a number or a pointer of a known type on its left, not int
= 1

$ -x errtags -q -n 'void *p; BEGIN { p + 1; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: operator + cannot take void * and int
= 1

$ -x errtags -q -n 'BEGIN { mutex_owned("s"); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: mutex_owned( ) argument #1 is incompatible with its prototype: struct lock_object * wanted, string given
= 1

$ -x errtags -q -n 'BEGIN { tracemem(alloca(4), "s"); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: tracemem( ) argument #2 is incompatible with its prototype: size_t wanted, string given
= 1

$ -x errtags -q -n 'BEGIN { printa(123); }'
!dtrace: invalid probe specifier ...: [D_PRINTA_AGGARG] in action list: printa( ) argument #1 is not an aggregation
= 1

$ -x errtags -q -n 'BEGIN { sizeof (`); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve `: no such symbol
= 1

$ -x errtags -q -n 'BEGIN { sizeof (`nosuch); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve `nosuch: no such symbol
= 1

# 9: a member without a translation

$ -x errtags -q -n 'struct o { int a; int b; }; translator struct o < int X > { a = X; }; BEGIN { trace(xlate <struct o> (1).b); }'
!dtrace: invalid probe specifier ...: [D_XLATE_NOCONV] in action list: the translator to struct o does not define b
= 1

$ -x errtags -q -n 'struct o { int a; int b; }; translator struct o < int X > { a = X; }; BEGIN { trace(xlate <struct o> (1).c); }'
!dtrace: invalid probe specifier ...: [D_XLATE_NOCONV] in action list: the translator to struct o does not define c
= 1

# 10: a snapshot of the aggregations is never older than the buffer it accompanies

$ -x errtags -q -x aggrate=1ms -x switchrate=50ms -n 'fbt::sys_read:entry { @ = count(); } fbt::sys_read:entry { printa("%@d\n", @); }'
|4
|4
|4
|4
|

# 11: the environment of -c (tests/sessions/environment.t), and its options

$ -x errtags -q -x unsetenv=a=b -n 'BEGIN { }'
!dtrace: failed to set -x unsetenv: Invalid value for specified option
= 1

# 12: print() of structures, arrays, functions, translations

$ -x errtags -q -n 'struct s { int a; struct { char x; short y; } b; struct { int q; } c[2]; int (*f)(); int bf:3; char t[4]; }; struct s v; BEGIN { print(v); exit(0); }'
|struct s {
|    int a = 0
|    struct b = {
|        char x = '\0'
|        short y = 0
|    }
|    struct [2] c = [ 
|        struct  {
|            int q = 0
|        }, 
|        struct  {
|            int q = 0
|        }
|    ]
|    int (*)() f = 0
|    int bf :3 = 0
|    char [4] t = [ "" ]
|}

$ -x errtags -q -n 'int (*g)(); BEGIN { print(g); exit(0); }'
|int (*)() 0
|

$ -x errtags -q -n 'struct p { int x; struct { int y; } q; }; translator struct p < int X > { x = X; }; BEGIN { print(*(xlate <struct p *> (1))); print(xlate <struct p> (2)); exit(0); }'
|struct p {
|    int x = 0x1
|    struct q = {
|        int y = 0
|    }
|}struct p {
|    int x = 0x2
|    struct q = {
|        int y = 0
|    }
|}

$ -x errtags -q -n 'struct p { int x; }; translator struct p < int X > { x = X; }; BEGIN { print(xlate <struct p *> (1)); }'
!dtrace: invalid probe specifier ...: [D_PRINT_DYN] in action list: print( ) of a translation: show one of its members
= 1

# 13: scalars keep 64 bits until they are recorded, but a constant is cut to the type of what it is assigned to

$ -x errtags -q -n 'BEGIN { i = 1; i = 6000000000; printf("%d\n", i / 2); exit(0); }'
|852516352
|

$ -x errtags -q -n 'BEGIN { i = 1; j = 6000000000; i = j; printf("%d\n", i / 2); exit(0); }'
|-1294967296
|

$ -x errtags -q -n 'BEGIN { i = 25920; i = i - 5 * i * i; i = i * (i - 3) / i * 6; printf("%d\n", i); exit(0); }'
|-91738734
|

# 14: %Y and %T are local time (the scene's is UTC)

$ -x errtags -q -n 'BEGIN { printf("%Y|%T\n", (int64_t)1000000000000000000, (int64_t)1000000000000000000); exit(0); }'
|2001 Sep  9 01:46:40|Sun, 09 Sep 2001 01:46:40 UTC
|

# 15: copyout() and copyoutstr() in a clause that speculates

$ -x errtags -q -w -n 'BEGIN { speculate(1); copyout(alloca(4), 8, 4); }'
!dtrace: invalid probe specifier ...: [D_ACT_SPEC] in action list: copyout( ) cannot follow speculate( )
= 1

$ -x errtags -q -w -n 'BEGIN { speculate(1); copyoutstr("a", 8, 4); }'
!dtrace: invalid probe specifier ...: [D_ACT_SPEC] in action list: copyoutstr( ) cannot follow speculate( )
= 1

# 16: the D container by name

$ -x errtags -q -n 'struct s { int x; int y; }; typedef int t; BEGIN { trace(offsetof(struct D`s, y)); trace((D`int *)0); trace(sizeof (D`t)); exit(0); }'
|404

# 17: a translated member read through an inline does not inherit the kernel's stability

$ -x errtags -q -v -n 'struct o { int a; }; translator struct o < int X > { a = X; }; inline int q = xlate <struct o> (1).a; BEGIN { trace(q); exit(0); }'
|
|Stability attributes for description struct o :
|
|	Minimum Probe Description Attributes
|		Identifier Names: Unstable
|		Data Semantics:   Unstable
|		Dependency Class: Common
|
|	Minimum Statement Attributes
|		Identifier Names: Stable
|		Data Semantics:   Stable
|		Dependency Class: Common
|
|1

# 18: the rest

$ -x errtags -q -w -n 'BEGIN { chill(50000000); exit(0); }'
|

$ -x errtags -q -x bufpolicy=ring -x bufsize=50 -n 'tick-1ms { trace(i++); } tick-1ms /i > 300/ { exit(0); }'
|2

$ -x errtags -i 0
!dtrace: invalid probe specifier ...: [D_PDESC_INVAL] invalid probe identifier 0
= 1

> a.d
|#pragma D depends_on library b.d
|inline int A = 1;
> b.d
|#pragma D depends_on library a.d
|inline int B = 1;
$ -L . -e -n BEGIN
!dtrace: failed to load libraries: a.d: the libraries depend on each other in a cycle
= 1

> c.d
|#pragma D depends_on library nosuch.d
|inline int A = 1;
$ -L . -e -n BEGIN
!dtrace: failed to load libraries: c.d: the library depends on nosuch.d, which cannot be found
= 1

> a.d
|#pragma D option version=1.0
|BEGIN { trace(json("1", "a")); }
$ -x errtags -q -s a.d
!dtrace: failed to compile script ...: [D_FUNC_UNDEF] line 2: undefined function name: json
= 1

$ -x errtags -q -n 'char *k; BEGIN { j = "hello"; trace(j[1]); k = j; k[0] = 0x44; printf("%s", j); this->s = "abc"; this->s[0] = 0x58; printf(" %s\n", this->s); *(int *)alloca(4) = 1; exit(0); }'
|101Dello Xbc
|

$ -x errtags -q -n 'char *k; BEGIN { k = "string"; printf("%s\n", stringof(k)); exit(0); }'
|string
|

$ -x errtags -q -n 'extern int a[]; int x[int][4]; struct r { int a; }; union r { int b; }; BEGIN { x[1][2] = 5; trace(x[1][2]); exit(0); }'
|5

$ -x errtags -q -n 'int x[int][4]; BEGIN { this->i = 4; trace(x[1][this->i]); } ERROR { trace(arg4); exit(1); }'
|1
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #2 at DIF offset 132
= 1

$ -x errtags -q -n 'int x[int][4]; BEGIN { x[1][-1] = 3; } ERROR { trace(arg4); exit(1); }'
|1
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0xfffffffffffffffc) in action #1 at DIF offset 136
= 1

$ -x errtags -q -n 'BEGIN { !a[1]; -self->x; ~b[2]; trace(sizeof (a[1])); trace(sizeof (self->x)); exit(0); }'
|88

$ -x errtags -q -x defaultargs -n 'BEGIN /"a" != $$1/ { trace($1); printf("<%s>\n", $$2); exit(0); }'
|0<>
|

$ -x errtags -q -n 'BEGIN { trace(sizeof (struct { int a:1; })); trace(sizeof (struct { int a:9; })); trace(sizeof (struct { int a:17; })); trace(sizeof (NULL)); exit(0); }'
|1244

> a.d
|#if 1
|#else
|#else
|#endif
|BEGIN { }
$ -x errtags -q -C -s a.d
!dtrace: failed to compile script ...: Preprocessor failed to process input program: "a.d", line 3: #else after #else
= 1

> a.d
|#if 1
|BEGIN { }
$ -x errtags -q -C -s a.d
!dtrace: failed to compile script ...: Preprocessor failed to process input program: "a.d", line 1: Unterminated #if 1
= 1

$ -x errtags -q -n 'BEGIN { @ = llquantize(0, 100, 0, 9, 100); }'
!dtrace: invalid probe specifier ...: [D_LLQUANT_MAGTOOBIG] in action list: llquantize( ): 100 to the power 9 overflows
= 1

$ -x errtags -q -n 'BEGIN { x = -9223372036854775807 - 1; trace(x % -1); } ERROR { trace(arg4); exit(1); }'
|4
!dtrace: error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #2 at DIF offset 8
= 1

# compound assignments, casts and constants: dt_parser.c, dt_cook_op2()

$ -x errtags -q -n 'BEGIN { x += 1; }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: x has not been declared or assigned
= 1

$ -x errtags -q -n 'BEGIN { self->x |= 1; }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: self->x has not been declared or assigned
= 1

$ -x errtags -q -n 'BEGIN { a[1] -= 1; }'
!dtrace: invalid probe specifier ...: [D_VAR_UNDEF] in action list: a[ ] has not been declared or assigned
= 1

$ -x errtags -q -n 'BEGIN { x = (int *)0; x = (char *)0; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: x is int *: char * cannot be assigned to it
= 1

$ -x errtags -q -n 'BEGIN { (char *)execname; }'
!dtrace: invalid probe specifier ...: [D_CAST_INVAL] in action list: string cannot be cast to char *
= 1

$ -x errtags -q -n 'BEGIN { (uintptr_t)execname; }'
!dtrace: invalid probe specifier ...: [D_CAST_INVAL] in action list: string cannot be cast to uintptr_t
= 1

$ -x errtags -q -n 'BEGIN { uregs[0] = 1; }'
!dtrace: invalid probe specifier ...: [D_OP_WRITE] in action list: operator =: uregs[ ] cannot be written
= 1

$ -x errtags -q -n 'int *p; BEGIN { p = 0; p = NULL; p = (void *)8; trace((int)p); exit(0); }'
|8

# a pragma before a translator names it by the keyword, and only the next one

> b.d
|typedef struct s { int a; } s_t;
|#pragma D binding "1.13" translator
|#pragma D attributes Stable/Stable/Common translator
|translator s_t < int X > { a = X; };
|BEGIN { trace(xlate <s_t> (4).a); exit(0); }
$ -x errtags -q -s b.d
|4

> c.d
|typedef struct s { int a; } s_t;
|translator s_t < int X > { a = X; };
|#pragma D binding "1.13" translator
|BEGIN { exit(0); }
$ -x errtags -q -s c.d
!dtrace: failed to compile script ...: [D_PRAGMA_UNUSED] line 3: the program does not define translator
= 1

# arrays compare with 0 as pointers do, and pass to pointers

$ -x errtags -q -n 'struct s { char t[4]; int n[2]; }; struct s *p; BEGIN { p = alloca(12); printf("%d %d", p->t != 0, p->n == 0); exit(0); }'
|1 0

# what a translator and inlines with parameters need is computed at each use if there are too few registers

> d.d
|struct in { char t[8]; int k; }; struct out { string a; };
|inline string word[int k, char t[8]] = k == 1 ? strjoin(
|    strjoin(strjoin(lltostr(t[0] & 0xff), "."), strjoin(lltostr(t[1] & 0xff), ".")),
|    strjoin(strjoin(lltostr(t[2] & 0xff), "."), lltostr(t[3] & 0xff))) : "";
|translator struct out < struct in *I > { a = word[I->k, I->t]; };
|this struct out o; this struct in *i;
|BEGIN { this->i = alloca(12); this->i->k = 1; this->i->t[2] = 5; this->o = xlate <struct out> (this->i); trace(this->o.a); exit(0); }
$ -x errtags -q -s d.d
|0.0.5.0

# an array is an address too: tracemem( ), stringof and casts to string take one of any element type

$ -x errtags -q -n 'union u { uint32_t w; uint8_t b[4]; int n[1]; } un; BEGIN { un.w = 0x434241; printf("%s %s %s", stringof(un.b), (string)un.n, stringof(un.n)); exit(0); }'
|ABC ABC ABC
$ -x errtags -q -n 'union u { uint32_t w; uint8_t b[4]; } un; BEGIN { un.w = 0x434241; tracemem(un.b, 4); exit(0); }'
|
|             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
|         0: 41 42 43 00                                      ABC.
|
$ -x errtags -q -n 'union u { uint32_t w; uint8_t b[4]; } un; BEGIN { tracemem(un, 4); exit(0); }'
!dtrace: invalid probe specifier ...: [D_TRACEMEM_ADDR] in action list: tracemem( ) argument #1 is neither pointer nor integer
= 1
$ -x errtags -q -n 'union u { uint32_t w; uint8_t b[4]; } un; BEGIN { trace(stringof(un)); exit(0); }'
!dtrace: invalid probe specifier ...: [D_STRINGOF_TYPE] in action list: union u cannot be made a string
= 1

# print() of arrays of structures, of translations, of inlines that are translations

> a.d
|struct p { int x; struct { int a; } q[2]; unsigned char u[2]; };
|translator struct p < int X > { x = X; };
|inline struct p *gp[int i] = xlate <struct p *> (i);
|inline struct p gq = xlate <struct p> (5);
|struct p two[2];
|BEGIN { print(two[0].q); print(*gp[7]); printf("\n"); print(gq); printf("\n"); print(gp[8]->x); exit(0); }
$ -x errtags -q -s a.d
|struct [2] [ 
|    struct  {
|        int a = 0
|    }, 
|    struct  {
|        int a = 0
|    }
|]
|struct p {
|    int x = 0x7
|    struct [2] q = [ 
|        struct  {
|            int a = 0
|        }, 
|        struct  {
|            int a = 0
|        }
|    ]
|    unsigned char [2] u = [ 0, 0 ]
|}
|struct p {
|    int x = 0x5
|    struct [2] q = [ 
|        struct  {
|            int a = 0
|        }, 
|        struct  {
|            int a = 0
|        }
|    ]
|    unsigned char [2] u = [ 0, 0 ]
|}
|int 0x8
|
