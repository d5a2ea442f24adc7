/* Every error tag of the D compiler, with programs that are refused by it, or why there can be none here.
 * Words between brackets are further words of the command line. */

D_ACT_SPEC BEGIN { speculate(1); copyout(alloca(4), 8, 4) }
D_ACT_SPEC BEGIN { speculate(1); copyoutstr("a", 8, 4) }
D_ACT_SPEC BEGIN { speculate(1); panic() }
D_ADDROF_BITFIELD struct s { int a:3; }; struct s *p; BEGIN { trace(&p->a) }
D_ADDROF_LVAL BEGIN { trace(&1) }
D_ADDROF_VAR BEGIN { x = 1; trace(&x) }
D_AGG_COMM BEGIN { commit(1); @ = count() }
D_AGG_FUNC BEGIN { @ = 1 }
D_AGG_MDIM BEGIN { @a[1][2] = count() }
D_AGG_NULL BEGIN { @a = count(); @a }
D_AGG_NULL BEGIN { @a[1] }
D_AGG_REDEF BEGIN { @ = count(); @ = sum(1) }
D_AGG_SCALAR BEGIN { @ = sum("a") }
D_AGG_SPEC BEGIN { speculate(1); @ = count() }
D_ARGS_IDX BEGIN { trace(args[0]) }
D_ARGS_MULTI fbt:::entry { trace(args[0]) }
D_ARGS_MULTI [-Z] nosuch:::entry { trace(args[0]) }
D_ARGS_NONE inline int x = args[0];
D_ARGS_TYPE fbt::odd:entry { trace(args[0]) }
D_ARGS_XLATOR fbt::odd:return { trace(args[0]->x) }
D_ARR_BADREF int *p; BEGIN { trace(p[1, 2]) }
D_ARR_LOCAL BEGIN { this->a[1] = 2 }
D_ASRELO: symbols are resolved while a program is compiled, so that none is left after assembly
D_ATTR_MIN [-x amin=Evolving/Evolving/Common] BEGIN { trace(`ticks) }
D_CAST_INVAL BEGIN { trace((int)"text") }
D_CAST_INVAL BEGIN { x = 1; (char)trace(x) }
D_CAST_INVAL struct s { int a; }; struct s v; BEGIN { trace((int)v) }
D_CG_DYN struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { xlate <struct t *> (1) }
D_CG_EXPR BEGIN { count() }
D_CG_EXPR BEGIN { (void)exit(0) }
D_CG_EXPR BEGIN { x = stack() }
D_CHR_NL BEGIN { trace('a
D_CHR_NULL BEGIN { trace('') }
D_CHR_OFLOW BEGIN { trace('123456789') }
D_CLEAR_AGGARG BEGIN { clear(1) }
D_CLEAR_AGGBAD BEGIN { clear(@nosuch[1]) }
D_CLEAR_PROTO BEGIN { clear() }
D_COMM_COMM BEGIN { commit(1); commit(1) }
D_COMM_DREC BEGIN { trace(1); commit(1) }
D_DECL_ARRBIG int x[0x200000000];
D_DECL_ARRNULL int x[];
D_DECL_ARRSUB int x[0];
D_DECL_BADCLASS static int x;
D_DECL_BFCONST int n; struct s { int a : n; };
D_DECL_BFSIZE struct s { int a : 40; };
D_DECL_BFTYPE struct s { string a : 4; };
D_DECL_CHARATTR long char x;
D_DECL_CLASS extern static int x;
D_DECL_CLASS self this int x;
D_DECL_CLASS this self int x;
D_DECL_COMBO int char x;
D_DECL_DYNOBJ int a[3][int];
D_DECL_ENCONST enum e { A = "x" };
D_DECL_ENOFLOW enum e { A = 0x100000000 };
D_DECL_IDENT int x y;
D_DECL_IDRED enum e { A }; enum f { A };
D_DECL_IDRED int pid;
D_DECL_IDRED int x; char *x;
D_DECL_INCOMPLETE struct s x;
D_DECL_LOCASSC this int a[int];
D_DECL_LONGINT struct s { int a; }; long struct s x;
D_DECL_MNAME struct s { int ; };
D_DECL_PARMCLASS BEGIN { trace((static int)1) }
D_DECL_PROTO_FORM inline int f[int a, int a] = 1;
D_DECL_PROTO_FORM provider p { probe a(int x) : (int y); };
D_DECL_PROTO_NAME inline int f[int] = 1;
D_DECL_PROTO_NAME provider p { probe a(void x); };
D_DECL_PROTO_TYPE int a[void];
D_DECL_PROTO_TYPE int f(int a[int]);
D_DECL_PROTO_VARARGS provider p { probe a(int x, ...); };
D_DECL_PROTO_VOID extern int f(int, void);
D_DECL_SCOPE int `x;
D_DECL_SIGNINT signed float x;
D_DECL_SIGNINT struct s { int a; }; unsigned struct s x;
D_DECL_TYPERED struct o { int a; }; struct o { nosuch_t b; };
D_DECL_TYPERED struct s { int a; }; struct s { int b; };
D_DECL_USELESS int;
D_DECL_VOIDATTR unsigned void *x;
D_DECL_VOIDOBJ struct { int trace(); } x;
D_DECL_VOIDOBJ void x;
D_DEREF_FUNC int (*f)(int); BEGIN { trace(*f) }
D_DEREF_NONPTR BEGIN { trace(*pid) }
D_DEREF_VOID BEGIN { trace(*(void *)8) }
D_DIV_ZERO BEGIN { trace(1 / 0) }
D_DREC_COMM BEGIN { commit(1); trace(1) }
D_EMPTY /* nothing */
D_EXIT_SPEC BEGIN { speculate(1); exit(0) }
D_FREOPEN_INVALID BEGIN { freopen(" ") }
D_FUNC_IDENT BEGIN { (1 + 2)() }
D_FUNC_IDENT BEGIN { @c[0][1] = f-1() }
D_FUNC_IDENT BEGIN { @c[0][2] = tick-1() }
D_FUNC_IDKIND BEGIN { pid() }
D_FUNC_UNDEF BEGIN { @c = nosuch() }
D_FUNC_UNDEF BEGIN { @c["x"] = foo() }
D_FUNC_UNDEF BEGIN { nosuch() }
D_IDENT_AMBIG int VREG; BEGIN { trace(`rootvnode.v_type == VREG) }
D_IDENT_BADREF BEGIN { trace(strlen) }
D_IDENT_UNDEF BEGIN { @a }
D_IDENT_UNDEF BEGIN { clear(@nosuch) }
D_IDENT_UNDEF BEGIN { denormalize(@nosuch) }
D_IDENT_UNDEF BEGIN { normalize(@nosuch, 1) }
D_IDENT_UNDEF BEGIN { printa(@nosuch) }
D_IDENT_UNDEF BEGIN { trunc(@nosuch) }
D_IDENT_UNDEF BEGIN { printa(@a) } END { @a = count() }
D_IDENT_UNDEF BEGIN { trunc(@a); @a = count() }
D_IDENT_UNDEF BEGIN { @a = count(); trunc(@a, @b) }
D_IDENT_UNDEF BEGIN { printf("%d"); x = nosuch }
D_IDENT_UNDEF BEGIN { trace(@a + 3) }
D_IDENT_UNDEF BEGIN { trace(nosuch) }
D_IDENT_UNDEF BEGIN { trace(sizeof (`)) }
D_IDENT_UNDEF BEGIN { trace(sizeof (`nosuch)) }
D_IDENT_UNDEF BEGIN { x = @a }
D_ID_OFLOW: tests/trapline/d/test_tags.py: it takes 65536 variables
D_INT_DIGIT BEGIN { trace(08) }
D_INT_OFLOW BEGIN { trace(99999999999999999999) }
D_KEY_TYPE BEGIN { @[(void)1] = count() }
D_KEY_TYPE BEGIN { @a = count(); @b[@a] = count() }
D_KEY_TYPE BEGIN { @b[printf("a")] = count() }
D_LLQUANT_FACTOREVEN BEGIN { @ = llquantize(1, 10, 0, 3, 15) }
D_LLQUANT_FACTORMATCH BEGIN { @ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, 100, 0, 3, 100) }
D_LLQUANT_FACTORNSTEPS BEGIN { @ = llquantize(1, 10, 0, 3, 5) }
D_LLQUANT_FACTORSMALL BEGIN { @ = llquantize(1, 1, 0, 3, 10) }
D_LLQUANT_FACTORTYPE BEGIN { @ = llquantize(1, pid, 0, 3, 10) }
D_LLQUANT_FACTORVAL BEGIN { @ = llquantize(1, 70000, 0, 3, 10) }
D_LLQUANT_HIGHMATCH BEGIN { @ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, 10, 0, 4, 10) }
D_LLQUANT_HIGHTYPE BEGIN { @ = llquantize(1, 10, 0, pid, 10) }
D_LLQUANT_HIGHVAL BEGIN { @ = llquantize(1, 10, 0, 70000, 10) }
D_LLQUANT_LOWMATCH BEGIN { @ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, 10, 1, 3, 10) }
D_LLQUANT_LOWTYPE BEGIN { @ = llquantize(1, 10, pid, 3, 10) }
D_LLQUANT_LOWVAL BEGIN { @ = llquantize(1, 10, -1, 3, 10) }
D_LLQUANT_MAGRANGE BEGIN { @ = llquantize(1, 10, 3, 3, 10) }
D_LLQUANT_MAGTOOBIG BEGIN { @ = llquantize(0, 100, 0, 9, 100) }
D_LLQUANT_MAGTOOBIG BEGIN { @ = llquantize(1, 10, 0, 30, 10) }
D_LLQUANT_NSTEPMATCH BEGIN { @ = llquantize(1, 10, 0, 3, 10); @ = llquantize(1, 10, 0, 3, 20) }
D_LLQUANT_NSTEPTYPE BEGIN { @ = llquantize(1, 10, 0, 3, pid) }
D_LLQUANT_NSTEPVAL BEGIN { @ = llquantize(1, 10, 0, 3, 70000) }
D_LQUANT_BASETYPE BEGIN { @ = lquantize(1, pid, 10, 1) }
D_LQUANT_BASEVAL BEGIN { @ = lquantize(1, 0x100000000, 3) }
D_LQUANT_LIMTYPE BEGIN { @ = lquantize(1, 10, pid) }
D_LQUANT_LIMVAL BEGIN { @ = lquantize(1, 0, 0x100000000) }
D_LQUANT_MATCHBASE BEGIN { @ = lquantize(1, 0, 10); @ = lquantize(1, 1, 10) }
D_LQUANT_MATCHBASE BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 1, 20, 2) }
D_LQUANT_MATCHLIM BEGIN { @ = lquantize(1, 0, 10); @ = lquantize(1, 0, 11) }
D_LQUANT_MATCHLIM BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 20, 2) }
D_LQUANT_MATCHSTEP BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 10, 2) }
D_LQUANT_MISMATCH BEGIN { @ = lquantize(1, 10, 0, 1) }
D_LQUANT_STEPLARGE BEGIN { @ = lquantize(1, 0, 10, 20) }
D_LQUANT_STEPSMALL BEGIN { @ = lquantize(1, 0, 100000) }
D_LQUANT_STEPTYPE BEGIN { @ = lquantize(1, 0, 10, pid) }
D_LQUANT_STEPVAL BEGIN { @ = lquantize(1, 0, 10, 70000) }
D_MACRO_OFLOW [99999999999999999999] BEGIN { trace($1) }
D_MACRO_UNDEF BEGIN { trace($1) }
D_MACRO_UNUSED [1 2] BEGIN { trace($1) }
D_NOREG BEGIN { trace(pid+(pid+(pid+(pid+(pid+(pid+(pid+(pid+pid)))))))) }
D_NORMALIZE_AGGARG BEGIN { normalize(1, 2) }
D_NORMALIZE_AGGBAD BEGIN { denormalize(@nosuch[1]) }
D_NORMALIZE_AGGBAD BEGIN { normalize(@nosuch[1], 1) }
D_NORMALIZE_PROTO BEGIN { @ = count(); normalize(@) }
D_NORMALIZE_SCALAR BEGIN { @ = count(); normalize(@, "a") }
D_OFFSETOF_BITFIELD struct s { int a:3; }; BEGIN { trace(offsetof(struct s, a)) }
D_OFFSETOF_TYPE BEGIN { trace(offsetof(int, x)) }
D_OP_ACT int c; BEGIN { c ? printf("x") : 1 }
D_OP_ACT int c; BEGIN { c ? trace(1) : trace(2) }
D_OP_ARITH BEGIN { trace(-"a") }
D_OP_ARITH BEGIN { trace(1 + -trace(0)) }
D_OP_ARRFUN int a[4]; int b[4]; BEGIN { a = b }
D_OP_DYN int c; BEGIN { @a = count(); c ? @a : 1 }
D_OP_DYN struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { (xlate <struct t *> (1), 2) }
D_OP_IDENT BEGIN { trace(curthread->5) }
D_OP_INCOMPAT BEGIN { trace("a" == 1) }
D_OP_INCOMPAT BEGIN { trace(1 + trace(0)) }
D_OP_INCOMPAT int x; BEGIN { x = "a" }
D_OP_INCOMPAT void *p; BEGIN { trace(p + 1) }
D_OP_INCOMPLETE struct s *p; BEGIN { trace(p->x) }
D_OP_INT BEGIN { trace("a" & 1) }
D_OP_LVAL BEGIN { 1 = 2 }
D_OP_PTR BEGIN { trace(pid->x) }
D_OP_SCALAR BEGIN { trace("a" && 1) }
D_OP_SOU BEGIN { trace(pid.x) }
D_OP_VFPTR int p; BEGIN { p -= alloca(10) }
D_OP_VFPTR void *p; BEGIN { p += 1 }
D_OP_VFPTR void *p; BEGIN { p++ }
D_OP_WRITE BEGIN { *(int *)curthread = 1 }
D_OP_WRITE BEGIN { pid = 1 }
D_PDESC_INVAL a:b:c:d:e { }
D_PDESC_INVAL ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff:entry { }
D_PDESC_ZERO nosuch { }
D_PRAGCTL_INVAL #define X 1\nBEGIN { }
D_PRAGERR #error no\nBEGIN { }
D_PRAGMA_DEPEND #pragma D depends_on library io.d\nBEGIN { }
D_PRAGMA_INVAL #pragma D nosuch\nBEGIN { }
D_PRAGMA_INVAL int x;\n#pragma D attributes Stable/Stable x\nBEGIN { }
D_PRAGMA_INVAL int x;\n#pragma D binding 1.0 x\nBEGIN { }
D_PRAGMA_MALFORM #line nowhere\nBEGIN { }
D_PRAGMA_MALFORM #pragma D binding x\nBEGIN { }
D_PRAGMA_MALFORM #pragma D option\nBEGIN { }
D_PRAGMA_OPTSET #pragma D option nosuch\nBEGIN { }
D_PRAGMA_SCOPE #pragma D attributes Stable/Stable/Common pid\nBEGIN { }
D_PRAGMA_UNUSED #pragma D attributes Stable/Stable/Common nosuch\nBEGIN { }
D_PRAGMA_UNUSED #pragma D attributes Stable/Stable/Common provider nosuch args\nBEGIN { }
D_PRED_SCALAR BEGIN /"text"/ { }
D_PRINTA_AGGARG BEGIN { printa("%d", 1) }
D_PRINTA_AGGARG BEGIN { printa(123) }
D_PRINTA_AGGBAD BEGIN { printa(@nosuch[1]) }
D_PRINTA_AGGKEY BEGIN { @a[1] = count(); @b = count(); printa("%@d %@d", @a, @b) }
D_PRINTA_AGGPROTO BEGIN { @a[1] = count(); @b[execname] = count(); printa(@a, @b) }
D_PRINTA_PROTO BEGIN { printa("%d") }
D_PRINTF_AGG_CONV BEGIN { printf("%@d", 1) }
D_PRINTF_ARG_EXTRA BEGIN { printf("%d", 1, 2) }
D_PRINTF_ARG_FMT BEGIN { printf(1) }
D_PRINTF_ARG_PROTO BEGIN { printf("%d") }
D_PRINTF_ARG_TYPE BEGIN { @a = count(); printf("%d", @a) }
D_PRINTF_ARG_TYPE BEGIN { printf("%s", 1) }
D_PRINTF_ARG_TYPE BEGIN { printf("%s", printf("t")) }
D_PRINTF_DYN_PROTO BEGIN { printf("%*d") }
D_PRINTF_DYN_TYPE BEGIN { printf("%*d", "a", 1) }
D_PRINTF_FMT_EMPTY BEGIN { printf("") }
D_PRINT_AGG BEGIN { @ = count(); print(@) }
D_PRINT_DYN struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { print(xlate <struct t *> (1)) }
D_PRINT_VOID BEGIN { print((void)1) }
D_PROC_ALIGN: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_BADPID pid0::main:entry { }
D_PROC_BADPROV [12] $1:::entry { }
D_PROC_CREATEFAIL: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_DYN: static programs have their probes too
D_PROC_FUNC: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_GRAB pid12::main:entry { }
D_PROC_LIB: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_NAME: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_NODEV: the process tracing service is part of every guest that has processes to trace
D_PROC_OFF: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROC_USDT: tests/emu/guest/linux/test_process_tags.py: it takes a process
D_PROTO_ARG BEGIN { strlen(1) }
D_PROTO_ARG BEGIN { trace(args[pid]) }
D_PROTO_ARG BEGIN { tracemem(curthread, "s") }
D_PROTO_LEN BEGIN { exit() }
D_PROTO_LEN BEGIN { printa() }
D_PROTO_LEN BEGIN { progenyof(trace()) }
D_PROTO_LEN BEGIN { strlen() }
D_PROTO_LEN int c; BEGIN { c ? printf("x") : trace() }
D_PROV_BADNAME provider p { probe xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx(); };
D_PROV_BADNAME provider p1 { probe a(); };
D_PROV_INCOMPAT provider p { probe a(); }; provider p { probe a(int); };
D_PROV_PRARGLEN provider p { probe a(int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int); };
D_PROV_PRDUP provider p { probe a(); probe a(int); };
D_PROV_PRXLATOR struct t { int a; }; provider p { probe a(int x) : (struct t *x); };
D_QUANT_PROTO: kept for numbering: too many arguments are D_PROTO_LEN
D_REGS_IDX BEGIN { trace(uregs[-1]) }
D_SIZEOF_BITFIELD struct s { int a:3; }; struct s *p; BEGIN { trace(sizeof (p->a)) }
D_SIZEOF_TYPE BEGIN { trace(sizeof (void)) }
D_SPEC_COMM BEGIN { commit(1); speculate(1) }
D_SPEC_DREC BEGIN { trace(1); speculate(1) }
D_SPEC_SPEC BEGIN { speculate(1); speculate(1) }
D_STACK_PROTO BEGIN { stack(1, 2) }
D_STACK_SIZE BEGIN { stack(0) }
D_STRINGOF_TYPE BEGIN { trace(stringof(trace(0))) }
D_STRINGOF_TYPE struct s { int a; }; struct s v; BEGIN { trace(stringof(v)) }
D_STR_NL BEGIN { trace("a\n") }
D_SYM_BADREF BEGIN { trace(``ticks) }
D_SYM_MODEL [-32] BEGIN { trace(`ticks) }
D_SYM_NOTYPES BEGIN { trace(`untyped) }
D_SYNTAX BEGIN { /* /* */ }
D_SYNTAX BEGIN { printf("%q", 1) }
D_SYNTAX BEGIN { trace((foo_t)1) }
D_SYNTAX BEGIN { trace(1 }
D_SYNTAX BEGIN { trace(1.5) }
D_SYNTAX int f(nosuch_t x);
D_SYNTAX struct s { nosuch_t a; };
D_SYNTAX typedef unknown new_t;
D_TRACEMEM_ADDR struct s { int a; }; struct s v; BEGIN { tracemem(v, 4) }
D_TRACEMEM_ARGS BEGIN { tracemem(arg0, 8, 1, 2) }
D_TRACEMEM_DYNSIZE BEGIN { tracemem(arg0, 8, "a") }
D_TRACEMEM_SIZE BEGIN { tracemem(arg0, 0) }
D_PRINTM_SIZE BEGIN { printm(0, memref(&`ticks, 4)) }
D_TRACE_AGG BEGIN { @ = count(); trace(@) }
D_TRACE_DYN struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { trace(xlate <struct t *> (1)) }
D_TRACE_VOID BEGIN { trace((void)1) }
D_TRACE_VOID BEGIN { trace(count()) }
D_TRUNC_AGGARG BEGIN { trunc(1) }
D_TRUNC_AGGBAD BEGIN { trunc(@nosuch[1]) }
D_TRUNC_PROTO BEGIN { trunc() }
D_TRUNC_SCALAR BEGIN { @ = count(); trunc(@, "a") }
D_TRUNC_SCALAR BEGIN { @ = count(); trunc(@, @) }
D_TYPE_ERR: the types the compiler needs are its own, and never missing
D_TYPE_MEMBER struct s { int a; }; struct s *p; BEGIN { trace(p->b) }
D_UNKNOWN BEGIN { trace((long short)0) }
D_UNKNOWN BEGIN { trace(offsetof(struct vnode, nosuch)) }
D_UNKNOWN enum e { A, A };
D_UNKNOWN struct s { int a; int a; };
D_USTACK_FRAMES BEGIN { ustack(pid) }
D_USTACK_PROTO BEGIN { ustack(1, 2, 3) }
D_USTACK_STRSIZE BEGIN { ustack(1, pid) }
D_VAR_UNDEF BEGIN { p -= trace(0) }
D_VAR_UNDEF BEGIN { q -= trace(0) }
D_VAR_UNDEF BEGIN { trace(self->nosuch) }
D_VAR_UNSUP: there is no variable of a kind that is not supported
D_XLATE_INCOMPAT struct t { int a; }; translator struct t < int X > { a = "text"; };
D_XLATE_MEMB struct t { int a; }; translator struct t < int X > { b = X; };
D_XLATE_NOCONV struct t { int a, b; }; translator struct t < int X > { a = X; }; BEGIN { trace(xlate <struct t> (1).b) }
D_XLATE_NOCONV struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { trace(xlate <struct t> (1).c) }
D_XLATE_NONE struct t { int a; }; BEGIN { trace(xlate <struct t> (1).a) }
D_XLATE_REDECL struct t { int a; }; translator struct t < int X > { a = X; }; translator struct t < int Y > { a = Y; };
D_XLATE_SOU struct t; translator struct t < int X > { a = X; };
D_XLATE_SOU translator int < int X > { a = X; };
D_PROTO_ARG BEGIN { mutex_owned("s") }
D_PROTO_ARG BEGIN { rw_read_held(1) }
D_PROTO_ARG BEGIN { bcopy(1, 2, 3) }
D_PROTO_ARG BEGIN { @ = lquantize("s", 0, 10, 1) }
D_PROTO_ARG BEGIN { @ = lquantize(1, "s", 10, 1) }
D_OP_WRITE fbt::malloc:entry { args[0] = 1 }
D_AGG_SCALAR BEGIN { @ = quantize("s") }
D_SYNTAX BEGIN /1/
D_PDESC_INVAL $1:::
D_PRINTF_ARG_TYPE BEGIN { @ = count(); printa("%@s", @) }
D_PRINTF_ARG_TYPE BEGIN { @ = sum(1); printa("%@c", @) }
D_DECL_COMBO void int x;
D_UNKNOWN signed unsigned x;
D_DECL_BADCLASS inline self int x = 1;
D_PRAGMA_MALFORM #pragma D option 1\nBEGIN { }
D_PROV_PRXLATOR provider p { probe a(char *x) : (int *x); };
