# Declarations, inlines, translators, providers, pragmas (sections 4, 21)

$ -x errtags -n 'inline int N = 5; int a[N]; BEGIN { a[N-1] = 2; trace(a[4] + N); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         7
|

$ -x errtags -n 'inline string S = execname; BEGIN { trace(S); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   sh                               
|

$ -x errtags -n 'inline int x[int a, int b] = a * b; BEGIN { trace(x[3, 4]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        12
|

$ -x errtags -n 'inline int x[int a] = a; BEGIN { trace(x); }'
!dtrace: invalid probe specifier ...: [D_IDENT_BADREF] in action list: x needs arguments in brackets
= 1

$ -x errtags -n 'inline int x[int a] = a; BEGIN { trace(x[1,2]); }'
!dtrace: invalid probe specifier ...: [D_PROTO_LEN] in action list: x[ ] has 1 key, not 2
= 1

$ -x errtags -n 'inline int x[int a] = a; BEGIN { trace(x["a"]); }'
!dtrace: invalid probe specifier ...: [D_PROTO_ARG] in action list: x[ ] key #1 is incompatible with its prototype: int wanted, string given
= 1

$ -x errtags -n 'inline int x = "abc";'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] x is int: string cannot be assigned to it
= 1

$ -x errtags -n 'inline void x = 1;'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDOBJ] x cannot be void
= 1

$ -x errtags -n 'inline int = 1;'
!dtrace: invalid probe specifier ...: [D_DECL_USELESS] an inline needs a name
= 1

$ -x errtags -n 'inline int x;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near ";"
= 1

$ -x errtags -n 'static inline int x = 1;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error (is a ';' missing before it?) near "inline"
= 1

$ -x errtags -n 'inline static int x = 1;'
!dtrace: invalid probe specifier ...: [D_DECL_BADCLASS] static has no meaning for an inline
= 1

$ -x errtags -n 'inline int x[5] = 1;'
!dtrace: invalid probe specifier ...: [D_DECL_ARRNULL] x: an inline cannot be an array
= 1

$ -x errtags -n 'inline int x = 1; inline int x = 2;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] x is defined already
= 1

$ -x errtags -n 'inline int x = 1; BEGIN { x = 2; }'
!dtrace: invalid probe specifier ...: [D_OP_LVAL] in action list: operator = needs a variable on its left
= 1

$ -x errtags -n 'inline int x = y;'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] failed to resolve y: unknown variable name
= 1

$ -x errtags -n 'int y; inline int x = y + 1; BEGIN { y = 4; trace(x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         5
|

$ -x errtags -n 'inline struct proc *P = curthread->td_proc; BEGIN { trace(P->p_pid); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        42
|

$ -x errtags -n 'struct s { int a; string b; }; translator struct s < struct proc *P > { a = P->p_pid; b = stringof(P->p_comm); }; BEGIN { trace(xlate <struct s> (&`proc0).a); trace(xlate <struct s *> (&`proc0)->b); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        42  kernel                           
|

$ -x errtags -n 'struct s { int a; string b; }; translator struct s < struct proc P > { a = P.p_pid; b = stringof(P.p_comm); }; BEGIN { trace(xlate <struct s> (`proc0).a); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        42
|

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; struct s v; BEGIN { v = xlate <struct s> (&`proc0); print(v); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN struct s {
|    int a = 0x2a
|    int b = 0x7
|}
|

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; inline struct s X = xlate <struct s> (&`proc0); BEGIN { trace(X.a + X.b); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        49
|

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; inline struct s *X = xlate <struct s *> (&`proc0); BEGIN { trace(X->a + X->b); trace(X); exit(0) }'
!dtrace: invalid probe specifier ...: [D_TRACE_DYN] in action list: trace( ) of a translation: show one of its members
= 1

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; BEGIN { print(xlate <struct s *> (&`proc0)); }'
!dtrace: invalid probe specifier ...: [D_PRINT_DYN] in action list: print( ) of a translation: show one of its members
= 1

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; BEGIN { x = xlate <struct s *> (&`proc0); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: a translation cannot be assigned
= 1

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; BEGIN { (xlate <struct s *> (&`proc0), 1); 1 ? xlate <struct s *> (&`proc0) : 0; }'
!dtrace: invalid probe specifier ...: [D_OP_DYN] in action list: operator , needs values, and one of these is not a value
= 1

$ -x errtags -n 'struct s { int a; int b; }; translator struct s < struct proc *P > { a = P->p_pid; b = 7; }; BEGIN { @[xlate <struct s *> (&`proc0)] = count(); }'
!dtrace: invalid probe specifier ...: [D_KEY_TYPE] in action list: @_[ ] key #1 cannot be a translation or an aggregation
= 1

$ -x errtags -n 'provider foo { probe a(int x); };'
!dtrace: no probes matched
= 1

$ -x errtags -n 'provider foo { probe a(int x, int x); };'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_FORM] two parameters of one name
= 1

$ -x errtags -n 'provider foo { probe a(void); }; BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'provider foo { probe a(void, int); };'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_VOID] void must be the only parameter
= 1

$ -x errtags -n 'provider foo { probe a(void x); };'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_NAME] x: a void parameter has no name
= 1

$ -x errtags -n 'provider foo { probe a(); probe b(int) : (int); };'
!dtrace: invalid probe specifier ...: [D_DECL_PROTO_NAME] probe b: a translated argument needs a name
= 1

$ -x errtags -n 'provider foo`x { probe a(); };'
!dtrace: invalid probe specifier ...: [D_PROV_BADNAME] foo`x is not a name for a provider
= 1

$ -x errtags -n 'provider foo { probe a(struct nosuch *); }; BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'provider foo { probe a(nosuch_t); };'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "nosuch_t"
= 1

> a.d
|#pragma D attributes Evolving/Evolving/ISA x
|int x; BEGIN { exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma D attributes evolving/evolving/isa x
|int x; BEGIN { exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma D attributes foo/Evolving/ISA x
|int x; BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_INVAL] line 1: 'foo/Evolving/ISA' is not a stability: write Name/Data/Class
= 1

> a.d
|#pragma D attributes Evolving/Evolving/ISA provider foo provider
|provider foo { probe a(); }; BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_UNUSED] line 1: the program does not define provider foo
= 1

> a.d
|#pragma D attributes Evolving/Evolving/ISA provider foo zork
|provider foo { probe a(); }; BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_INVAL] line 1: invalid pragma: write attributes Evolving/Evolving/ISA provider NAME provider|module|function|name|args
= 1

> a.d
|#pragma D binding "1.1" x
|int x; BEGIN { exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma D binding "foo" x
|int x; BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_INVAL] line 1: "foo" is not a version in quotes
= 1

> a.d
|#pragma D depends_on provider fbt
|BEGIN { exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma D depends_on provider nosuch
|BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_DEPEND] line 1: the program needs provider nosuch, which does not exist
= 1

> a.d
|#pragma D depends_on module kernel
|BEGIN { exit(0) }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

> a.d
|#pragma D depends_on zork kernel
|BEGIN { exit(0) }
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_INVAL] line 1: depends_on zork: write provider, module or library
= 1

> a.d
|#pragma D error foo bar
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGERR] line 1: #pragma D error: foo bar
= 1

> a.d
|#pragma error foo bar
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGERR] line 1: #pragma error: foo bar
= 1

> a.d
|#error foo bar
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGERR] line 1: #error: foo bar
= 1

> a.d
|#pragma D option quiet stackframes=3
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_MALFORM] line 1: malformed #pragma D option: write NAME or NAME=VALUE
= 1

> a.d
|#pragma D option quiet = 1
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_MALFORM] line 1: malformed #pragma D option: write NAME or NAME=VALUE
= 1

> a.d
|#pragma D option stackframes=3
|BEGIN { stack(); exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|              0xd7ace0200000000
|              kernel`sys_read+0x10
|              kernel`syscall+0x20
|
|

> a.d
|#pragma D
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_INVAL] line 1: invalid D pragma: 
= 1

> a.d
|#line
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_MALFORM] line 1: malformed #line: write #line NUMBER "FILE"
= 1

> a.d
|#line foo
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_MALFORM] line 1: malformed #line: write #line NUMBER "FILE"
= 1

> a.d
|#line 5 foo
|BEGIN
$ -x errtags -s a.d
!dtrace: failed to compile script ...: [D_PRAGMA_MALFORM] line 1: malformed #line: write #line NUMBER "FILE"
= 1

> a.d
|#line 5 "foo" 9
|BEGIN { exit(0); }
$ -x errtags -s a.d
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'struct s { int a; int a; };'
!dtrace: invalid probe specifier ...: [D_UNKNOWN] a is a member of struct s already
= 1

$ -x errtags -n 'enum e { A, A };'
!dtrace: invalid probe specifier ...: [D_UNKNOWN] A is defined already
= 1

$ -x errtags -n 'enum e { A = "x" };'
!dtrace: invalid probe specifier ...: [D_DECL_ENCONST] the value of A is not an integer constant
= 1

$ -x errtags -n 'enum e { A = 1 << 3, B, C = -1 }; BEGIN { trace(A + B + C); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        16
|

$ -x errtags -n 'enum e { A, B = 5 }; enum e v; BEGIN { v = B; print(v); trace(v == B); v = 7; print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN enum e B
|        1enum e 7
|
|

$ -x errtags -n 'enum e { A }; int A;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] A is defined already
= 1

$ -x errtags -n 'enum e { A = 0x80000000 };'
!dtrace: invalid probe specifier ...: [D_DECL_ENOFLOW] the value of A is not an int
= 1

$ -x errtags -n 'enum e { A }; enum f { A };'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] A is defined already
= 1

$ -x errtags -n 'enum e;'
!dtrace: no probes matched
= 1

$ -x errtags -n 'enum e x;'
!dtrace: invalid probe specifier ...: [D_DECL_INCOMPLETE] x: enum e is not defined
= 1

$ -x errtags -n 'struct s;  struct s *p; BEGIN { trace(p == NULL); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'struct s { struct s a; };'
!dtrace: invalid probe specifier ...: [D_DECL_INCOMPLETE] member a: struct s is not defined
= 1

$ -x errtags -n 'struct s { struct s *a; int b[4]; char c : 3; unsigned d : 5; }; struct s v; BEGIN { v.c = -1; v.d = 33; v.b[2] = 9; print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN struct s {
|    struct s *a = 0
|    int [4] b = [ 0, 0, 0x9, 0 ]
|    char c :3 = 0x7
|    unsigned int d :5 = 0x1
|}
|

$ -x errtags -n 'struct s { int a[0]; };'
!dtrace: invalid probe specifier ...: [D_DECL_ARRSUB] the size of a is not a positive constant
= 1

$ -x errtags -n 'struct s { int a[]; };'
!dtrace: no probes matched
= 1

$ -x errtags -n 'struct s { void a; };'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDOBJ] member a cannot be void
= 1

$ -x errtags -n 'struct s { int f(int); };'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDOBJ] member f cannot be int (int)
= 1

$ -x errtags -n 'struct s { int (*f)(int, char *); }; struct s v; BEGIN { print(v); trace(sizeof(v)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN struct s {
|    int (*)() f = 0
|}                8
|

$ -x errtags -n 'struct s { int : 3; int a; }; BEGIN { trace(sizeof(struct s)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 8
|

$ -x errtags -n 'struct s { int a : 0; };'
!dtrace: invalid probe specifier ...: [D_DECL_BFCONST] the width of a is not a positive constant
= 1

$ -x errtags -n 'struct s { int a : -1; };'
!dtrace: invalid probe specifier ...: [D_DECL_BFCONST] the width of a is not a positive constant
= 1

$ -x errtags -n 'struct s { int a : 33; };'
!dtrace: invalid probe specifier ...: [D_DECL_BFSIZE] 33 bits of a do not fit in int
= 1

$ -x errtags -n 'struct s { float a : 3; };'
!dtrace: invalid probe specifier ...: [D_DECL_BFTYPE] bit-field a is float, not an integer
= 1

$ -x errtags -n 'union u { int a; char b[4]; }; union u v; BEGIN { v.a = 0x41424344; trace(v.b[0]); print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   68union u {
|    int a = 0x41424344
|    char [4] b = [ 'D', 'C', 'B', 'A' ]
|}
|

$ -x errtags -n 'struct { int a; } v; BEGIN { v.a = 4; trace(v.a); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         4
|

$ -x errtags -n 'typedef struct { int a; } foo_t; foo_t v; BEGIN { v.a = 4; print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN foo_t {
|    int a = 0x4
|}
|

$ -x errtags -n 'typedef int (*fn_t)(int); fn_t f; BEGIN { trace(sizeof(f)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 8
|

$ -x errtags -n 'typedef int foo_t; typedef long foo_t;'
!dtrace: invalid probe specifier ...: [D_DECL_IDRED] foo_t is int already
= 1

$ -x errtags -n 'typedef int foo_t; typedef int foo_t; BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'extern int foo(int, char *); BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'int foo(int); BEGIN { foo(1); }'
!dtrace: invalid probe specifier ...: [D_FUNC_UNDEF] in action list: undefined function name: foo
= 1

$ -x errtags -n 'int foo(int); BEGIN { trace(foo); }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve foo: unknown variable name
= 1

$ -x errtags -n 'nosuch_t x;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "x"
= 1

$ -x errtags -n 'x y;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "y"
= 1

$ -x errtags -n 'int x y;'
!dtrace: invalid probe specifier ...: [D_DECL_IDENT] x y: two names in one declaration (is x a type?)
= 1

$ -x errtags -n 'int;'
!dtrace: invalid probe specifier ...: [D_DECL_USELESS] this declares nothing
= 1

$ -x errtags -n ';'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near ";"
= 1

$ -x errtags -n 'struct s { int a; }'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near end of input
= 1

$ -x errtags -n 'auto int x;'
!dtrace: invalid probe specifier ...: [D_DECL_BADCLASS] auto has no meaning for D variables
= 1

$ -x errtags -n 'register int x;'
!dtrace: invalid probe specifier ...: [D_DECL_BADCLASS] register has no meaning for D variables
= 1

$ -x errtags -n 'static int x;'
!dtrace: invalid probe specifier ...: [D_DECL_BADCLASS] static has no meaning for D variables
= 1

$ -x errtags -n 'extern int x; BEGIN { x = 1; trace(x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'typedef static int x;'
!dtrace: invalid probe specifier ...: [D_DECL_CLASS] typedef and static cannot be combined
= 1

$ -x errtags -n 'self static int x;'
!dtrace: invalid probe specifier ...: [D_DECL_CLASS] thread and static cannot be combined
= 1

$ -x errtags -n 'const int x; volatile int *y; int *const z; int *restrict w; BEGIN { x = 1; trace(x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         1
|

$ -x errtags -n 'userland char *p; BEGIN { p = (userland char *)0x405000; trace(*p); trace(stringof(p)); printf("%s", stringof(p)); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   47  /etc/motd                        /etc/motd
|

$ -x errtags -n 'int x, *y, z[4], w[int]; BEGIN { x = 1; y = NULL; z[1] = 2; w[1] = 3; trace(x + z[1] + w[1]); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN         6
|

$ -x errtags -n 'float f; double d; long double ld; BEGIN { printf("%f %g %e %Lf", f, d, d, ld); trace(f); print(d); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 0.000000 0 0.000000e+00 0.000000        0double +0.0000000e+00
|
|

$ -x errtags -n 'float f; BEGIN { f = 1; }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: f is float: int cannot be assigned to it
= 1

$ -x errtags -n 'float f; BEGIN { trace(f + 1); }'
!dtrace: invalid probe specifier ...: [D_OP_INCOMPAT] in action list: operator + cannot take float and int
= 1

$ -x errtags -n 'double x[2]; BEGIN { print(x); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN double [2] [ +0.0000000e+00, +0.0000000e+00 ]
|
|

$ -x errtags -n 'string s[3]; BEGIN { s[1] = "abc"; trace(s[1]); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   abc                              
|

$ -x errtags -n 'string *s; BEGIN { exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'int x[5000000000];'
!dtrace: invalid probe specifier ...: [D_DECL_ARRBIG] x cannot have 5000000000 elements
= 1

$ -x errtags -n 'int x[4294967296];'
!dtrace: invalid probe specifier ...: [D_DECL_ARRBIG] x cannot have 4294967296 elements
= 1

$ -x errtags -n 'struct s { string a; int b; }; struct s v; BEGIN { v.a = "hello"; v.b = 5; trace(v.a); trace(sizeof(v)); print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   hello                                          260struct s {
|    string a = "hello"
|    int b = 0x5
|}
|

$ -x errtags -n 'BEGIN { `x = 1; }'
!dtrace: invalid probe specifier ...: [D_IDENT_UNDEF] in action list: failed to resolve `x: no such symbol
= 1

$ -x errtags -n 'int a`b;'
!dtrace: invalid probe specifier ...: [D_DECL_SCOPE] a`b: kernel symbols cannot be declared
= 1

$ -x errtags -n 'BEGIN { trace(sizeof(struct { int a; char b; })); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN                 8
|

$ -x errtags -n 'long double x; long float y;'
!dtrace: invalid probe specifier ...: [D_DECL_LONGINT] 'long float' is not a type
= 1

$ -x errtags -n 'unsigned float x;'
!dtrace: invalid probe specifier ...: [D_DECL_SIGNINT] 'unsigned float' is not a type
= 1

$ -x errtags -n 'long char x;'
!dtrace: invalid probe specifier ...: [D_DECL_CHARATTR] 'long char' is not a type
= 1

$ -x errtags -n 'short char x;'
!dtrace: invalid probe specifier ...: [D_DECL_CHARATTR] 'short char' is not a type
= 1

$ -x errtags -n 'unsigned void x;'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDATTR] 'unsigned void' is not a type
= 1

$ -x errtags -n 'long void x;'
!dtrace: invalid probe specifier ...: [D_DECL_VOIDATTR] 'long void' is not a type
= 1

$ -x errtags -n 'short double x;'
!dtrace: invalid probe specifier ...: [D_DECL_COMBO] 'short double' is not a type
= 1

$ -x errtags -n 'long string x;'
!dtrace: invalid probe specifier ...: [D_DECL_LONGINT] 'long string' is not a type
= 1

$ -x errtags -n 'long struct proc x;'
!dtrace: invalid probe specifier ...: [D_DECL_LONGINT] long cannot be combined with struct proc
= 1

$ -x errtags -n 'int struct proc x;'
!dtrace: invalid probe specifier ...: [D_DECL_COMBO] int cannot be combined with struct proc
= 1

$ -x errtags -n 'struct proc int x;'
!dtrace: invalid probe specifier ...: [D_DECL_COMBO] int cannot be combined with struct proc
= 1

$ -x errtags -n 'signed uint8_t x;'
!dtrace: invalid probe specifier ...: [D_DECL_IDENT] uint8_t x: two names in one declaration (is uint8_t a type?)
= 1

$ -x errtags -n 'string const s; BEGIN { s = "a"; trace(s); exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN   a                                
|

$ -x errtags -n 'userland int x; BEGIN { exit(0) }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN 
|

$ -x errtags -n 'struct { int a; nosuch_t b; } x;'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "nosuch_t"
= 1

$ -x errtags -n 'int f(nosuch_t x);'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "nosuch_t"
= 1

$ -x errtags -n 'struct s { nosuch_t b; };'
!dtrace: invalid probe specifier ...: [D_SYNTAX] syntax error near "nosuch_t"
= 1

$ -x errtags -n 'struct b { int a : 3; int b : 7; unsigned c : 9; int d : 13; long e : 40; }; struct b v; BEGIN { v.a = -1; v.b = -60; v.c = 500; v.d = -4000; v.e = 1LL << 38; trace(v.a); trace(v.b); trace(v.c); trace(v.d); trace(v.e); print(v); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0      1                           :BEGIN        -1      -60      500    -4000     274877906944struct b {
|    int a :3 = 0x7
|    int b :7 = 0x44
|    unsigned int c :9 = 0x1f4
|    int d :13 = 0x1060
|    long e :40 = 0x4000000000
|}
|

$ -qn 'typedef struct vinfo { int v_twice; string v_label; } vinfo_t; translator vinfo_t < struct vnode *V > { v_twice = V->v_kind * 2; v_label = stringof(V->v_name); }; fbt::namei:entry { printf("%s %d %d\n", args[1]->v_label, args[1]->v_twice, args[1]->v_kind * 2); exit(0); }'
|cat 6 6
|

$ -x errtags -n 'typedef struct vinfo { int twice; } vinfo_t; translator vinfo_t < struct vnode *V > { twice = V->v_kind * 2; }; BEGIN { trace((&`rootvnode)->twice); }'
!dtrace: invalid probe specifier ...: [D_TYPE_MEMBER] in action list: twice is not a member of struct vnode
= 1

$ -x errtags -n 'struct a { int t; }; struct b { int t; }; translator struct a < struct vnode *V > { t = 1; }; translator struct b < struct vnode *V > { t = 2; }; fbt::namei:entry { trace(args[1]->t); }'
!dtrace: invalid probe specifier ...: [D_TYPE_MEMBER] in action list: t is not a member of struct vnode
= 1

$ -n 'fbt::sys_read:entry { trace(args[0]->pr_lwpid == args[0]->td_tid); exit(0); }'
|CPU     ID                    FUNCTION:NAME
|  0     17                   sys_read:entry         1
|

# A probe's argument may have another type for programs without a translator, if the types are compatible.
$ -x errtags -e -n 'provider p { probe a(char *s, int n) : (int n, string s); };'

$ -x errtags -e -n 'fbt::odd:return { printf("%s", args[1]); }'
