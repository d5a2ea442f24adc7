"""Every refusal has its tag and one clear message."""

from __future__ import annotations

import pytest

from tests.d.support import compile_text, tag_of
from trapline.d.compiler import Form
from trapline.d.errors import CompileError

REFUSED = [
    ("D_SYNTAX", "BEGIN { trace(1 }"),
    ("D_SYNTAX", "BEGIN"),
    ("D_SYNTAX", "BEGIN /1/"),
    ("D_SYNTAX", "BEGIN { trace(1.5) }"),
    ("D_SYNTAX", "BEGIN { /* /* */ }"),
    ("D_SYNTAX", 'BEGIN { printf("%q", 1) }'),
    ("D_EMPTY", "/* nothing */"),
    ("D_INT_OFLOW", "BEGIN { trace(99999999999999999999) }"),
    ("D_INT_DIGIT", "BEGIN { trace(08) }"),
    ("D_STR_NL", 'BEGIN { trace("a\n") }'),
    ("D_CHR_NULL", "BEGIN { trace('') }"),
    ("D_CHR_OFLOW", "BEGIN { trace('123456789') }"),
    ("D_MACRO_UNDEF", "BEGIN { trace($1) }"),
    ("D_PDESC_INVAL", "a:b:c:d:e { }"),
    ("D_PDESC_INVAL", f"{'f' * 200}:entry {{ }}"),
    ("D_PRED_SCALAR", 'BEGIN /"text"/ { }'),
    ("D_FUNC_UNDEF", "BEGIN { nosuch() }"),
    ("D_FUNC_IDKIND", "BEGIN { pid() }"),
    ("D_FUNC_IDENT", "BEGIN { (1 + 2)() }"),
    ("D_PROTO_LEN", "BEGIN { strlen() }"),
    ("D_PROTO_LEN", "BEGIN { exit() }"),
    ("D_PROTO_ARG", "BEGIN { strlen(1) }"),
    ("D_CG_EXPR", "BEGIN { trace(count()) }"),
    ("D_CG_EXPR", "BEGIN { x = exit(0) }"),
    ("D_SIZEOF_TYPE", "BEGIN { trace(sizeof (void)) }"),
    ("D_OFFSETOF_TYPE", "BEGIN { trace(offsetof(int, x)) }"),
    ("D_STRINGOF_TYPE", "struct s { int a; }; struct s v; BEGIN { trace(stringof(v)) }"),
    ("D_OP_INT", 'BEGIN { trace("a" & 1) }'),
    ("D_OP_SCALAR", 'BEGIN { trace("a" && 1) }'),
    ("D_OP_ARITH", 'BEGIN { trace(-"a") }'),
    ("D_OP_WRITE", "BEGIN { pid = 1 }"),
    ("D_OP_WRITE", "BEGIN { *(int *)curthread = 1 }"),
    ("D_OP_LVAL", "BEGIN { 1 = 2 }"),
    ("D_OP_INCOMPAT", 'int x; BEGIN { x = "a" }'),
    ("D_OP_INCOMPAT", 'BEGIN { trace("a" == 1) }'),
    ("D_OP_VFPTR", "BEGIN { trace(curthread + 1) }"),
    ("D_OP_PTR", "BEGIN { trace(pid->x) }"),
    ("D_OP_SOU", "BEGIN { trace(pid.x) }"),
    ("D_OP_INCOMPLETE", "struct s *p; BEGIN { trace(p->x) }"),
    ("D_TYPE_MEMBER", "struct s { int a; }; struct s *p; BEGIN { trace(p->b) }"),
    ("D_OP_ACT", "BEGIN { 1 ? trace(1) : trace(2) }"),
    ("D_OP_ARRFUN", "int a[4]; int b[4]; BEGIN { a = b }"),
    ("D_DIV_ZERO", "BEGIN { trace(1 / 0) }"),
    ("D_DEREF_NONPTR", "BEGIN { trace(*pid) }"),
    ("D_DEREF_VOID", "BEGIN { trace(*curthread) }"),
    ("D_ADDROF_VAR", "BEGIN { x = 1; trace(&x) }"),
    ("D_ADDROF_LVAL", "BEGIN { trace(&1) }"),
    ("D_CAST_INVAL", "struct s { int a; }; struct s v; BEGIN { trace((int)v) }"),
    ("D_KEY_TYPE", "BEGIN { @[(void)1] = count() }"),
    ("D_IDENT_BADREF", "BEGIN { trace(strlen) }"),
    ("D_IDENT_UNDEF", "BEGIN { trace(nosuch) }"),
    ("D_VAR_UNDEF", "BEGIN { trace(self->nosuch) }"),
    ("D_ARR_BADREF", "int *p; BEGIN { trace(p[1, 2]) }"),
    ("D_ARR_LOCAL", "BEGIN { this->a[1] = 2 }"),
    ("D_REGS_IDX", "BEGIN { trace(uregs[-1]) }"),
    ("D_DECL_CHARATTR", "long char x;"),
    ("D_DECL_COMBO", "int char x;"),
    ("D_DECL_CLASS", "extern static int x;"),
    ("D_DECL_BADCLASS", "static int x;"),
    ("D_DECL_ARRSUB", "int x[0];"),
    ("D_DECL_ARRNULL", "int x[];"),
    ("D_DECL_IDRED", "int pid;"),
    ("D_DECL_IDRED", "int x; char *x;"),
    ("D_DECL_TYPERED", "struct s { int a; }; struct s { int b; };"),
    ("D_DECL_VOIDOBJ", "void x;"),
    ("D_DECL_INCOMPLETE", "struct s x;"),
    ("D_DECL_BFSIZE", "struct s { int a : 40; };"),
    ("D_DECL_BFTYPE", "struct s { string a : 4; };"),
    ("D_DECL_ENOFLOW", "enum e { A = 0x100000000 };"),
    ("D_DECL_LOCASSC", "this int a[int];"),
    ("D_DECL_USELESS", "int;"),
    ("D_COMM_COMM", "BEGIN { commit(1); commit(1) }"),
    ("D_COMM_DREC", "BEGIN { trace(1); commit(1) }"),
    ("D_DREC_COMM", "BEGIN { commit(1); trace(1) }"),
    ("D_AGG_COMM", "BEGIN { commit(1); @ = count() }"),
    ("D_SPEC_SPEC", "BEGIN { speculate(1); speculate(1) }"),
    ("D_SPEC_DREC", "BEGIN { trace(1); speculate(1) }"),
    ("D_AGG_SPEC", "BEGIN { speculate(1); @ = count() }"),
    ("D_EXIT_SPEC", "BEGIN { speculate(1); exit(0) }"),
    ("D_TRACE_VOID", "BEGIN { trace((void)1) }"),
    ("D_TRACE_AGG", "BEGIN { @ = count(); trace(@) }"),
    ("D_TRACEMEM_SIZE", "BEGIN { tracemem(arg0, 0) }"),
    ("D_TRACEMEM_ADDR", "struct s { int a; }; struct s v; BEGIN { tracemem(v, 4) }"),
    ("D_STACK_SIZE", "BEGIN { stack(0) }"),
    ("D_STACK_PROTO", "BEGIN { stack(1, 2) }"),
    ("D_USTACK_FRAMES", "BEGIN { ustack(pid) }"),
    ("D_USTACK_PROTO", "BEGIN { ustack(1, 2, 3) }"),
    ("D_FREOPEN_INVALID", 'BEGIN { freopen(" ") }'),
    ("D_CLEAR_AGGBAD", "BEGIN { clear(@nosuch) }"),
    ("D_CLEAR_AGGARG", "BEGIN { clear(1) }"),
    ("D_TRUNC_PROTO", "BEGIN { trunc() }"),
    ("D_NORMALIZE_PROTO", "BEGIN { @ = count(); normalize(@) }"),
    ("D_PRINTF_ARG_FMT", "BEGIN { printf(1) }"),
    ("D_PRINTF_FMT_EMPTY", 'BEGIN { printf("") }'),
    ("D_PRINTF_ARG_PROTO", 'BEGIN { printf("%d") }'),
    ("D_PRINTF_ARG_TYPE", 'BEGIN { printf("%s", 1) }'),
    ("D_PRINTF_ARG_EXTRA", 'BEGIN { printf("%d", 1, 2) }'),
    ("D_PRINTF_AGG_CONV", 'BEGIN { printf("%@d", 1) }'),
    ("D_PRINTF_DYN_PROTO", 'BEGIN { printf("%*d") }'),
    ("D_PRINTF_DYN_TYPE", 'BEGIN { printf("%*d", "a", 1) }'),
    ("D_PRINTA_PROTO", "BEGIN { printa() }"),
    ("D_PRINTA_AGGBAD", "BEGIN { printa(@nosuch) }"),
    ("D_PRINTA_AGGKEY", 'BEGIN { @a[1] = count(); @b = count(); printa("%@d %@d", @a, @b) }'),
    ("D_AGG_REDEF", "BEGIN { @ = count(); @ = sum(1) }"),
    ("D_AGG_FUNC", "BEGIN { @ = 1 }"),
    ("D_AGG_NULL", "BEGIN { @a }"),
    ("D_AGG_SCALAR", 'BEGIN { @ = sum("a") }'),
    ("D_LQUANT_BASETYPE", "BEGIN { @ = lquantize(1, pid, 10, 1) }"),
    ("D_LQUANT_MISMATCH", "BEGIN { @ = lquantize(1, 10, 0, 1) }"),
    ("D_LQUANT_STEPLARGE", "BEGIN { @ = lquantize(1, 0, 10, 20) }"),
    ("D_LQUANT_MATCHSTEP", "BEGIN { @ = lquantize(1, 0, 10, 1); @ = lquantize(1, 0, 10, 2) }"),
    ("D_LLQUANT_FACTORSMALL", "BEGIN { @ = llquantize(1, 1, 0, 3, 10) }"),
    ("D_LLQUANT_MAGRANGE", "BEGIN { @ = llquantize(1, 10, 3, 3, 10) }"),
    ("D_XLATE_NONE", "struct t { int a; }; BEGIN { trace(xlate <struct t> (1).a) }"),
    ("D_XLATE_SOU", "translator int < int X > { a = X; };"),
    ("D_XLATE_SOU", "struct t; translator struct t < int X > { a = X; };"),
    ("D_XLATE_MEMB", "struct t { int a; }; translator struct t < int X > { b = X; };"),
    ("D_XLATE_INCOMPAT", 'struct t { int a; }; translator struct t < int X > { a = "text"; };'),
    (
        "D_XLATE_REDECL",
        "struct t { int a; }; translator struct t < int X > { a = X; }; translator struct t < int Y > { a = Y; };",
    ),
    (
        "D_XLATE_NOCONV",
        "struct t { int a, b; }; translator struct t < int X > { a = X; }; BEGIN { trace(xlate <struct t> (1).b) }",
    ),
    (
        "D_TYPE_MEMBER",
        "struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { trace(xlate <struct t> (1).c) }",
    ),
    ("D_PROV_BADNAME", "provider p1 { probe a(); };"),
    ("D_PROV_BADNAME", f"provider p {{ probe {'x' * 70}(); }};"),
    ("D_PROV_PRDUP", "provider p { probe a(); probe a(int); };"),
    ("D_PROV_INCOMPAT", "provider p { probe a(); }; provider p { probe a(int); };"),
    ("D_PROV_PRARGLEN", f"provider p {{ probe a({', '.join(['int'] * 256)}); }};"),
    ("D_PROV_PRXLATOR", "struct t { int a; }; provider p { probe a(int x) : (struct t *x); };"),
    ("D_DECL_PROTO_FORM", "provider p { probe a(int x) : (int y); };"),
    ("D_DECL_PROTO_VARARGS", "provider p { probe a(int x, ...); };"),
    ("D_PRAGMA_MALFORM", "#line nowhere\nBEGIN { }"),
    (
        "D_CG_DYN",
        "struct t { int a; }; translator struct t < int X > { a = X; }; BEGIN { xlate <struct t *> (1) }",
    ),
    ("D_AGG_MDIM", "BEGIN { @a[1][2] = count() }"),
    ("D_ACT_SPEC", "BEGIN { speculate(1); panic() }"),
    ("D_SPEC_COMM", "BEGIN { commit(1); speculate(1) }"),
    ("D_ADDROF_BITFIELD", "struct s { int a:3; }; struct s *p; BEGIN { trace(&p->a) }"),
    ("D_CHR_NL", "BEGIN { trace('a"),
    ("D_DECL_ARRBIG", "int x[0x200000000];"),
    ("D_DECL_BFCONST", "int n; struct s { int a : n; };"),
    ("D_DECL_LONGINT", "struct s { int a; }; long struct s x;"),
    ("D_DECL_SIGNINT", "signed float x;"),
    ("D_DECL_SIGNINT", "struct s { int a; }; unsigned struct s x;"),
    ("D_DECL_MNAME", "struct s { int ; };"),
    ("D_DECL_PARMCLASS", "BEGIN { trace((static int)1) }"),
    ("D_DECL_PROTO_FORM", "inline int f[int a, int a] = 1;"),
    ("D_DECL_PROTO_TYPE", "int a[void];"),
    ("D_DECL_PROTO_VOID", "extern int f(int, void);"),
    ("D_DECL_SCOPE", "int `x;"),
    ("D_DECL_VOIDATTR", "unsigned void *x;"),
    ("D_DEREF_FUNC", "int (*f)(int); BEGIN { trace(*f) }"),
    ("D_LLQUANT_FACTOREVEN", "BEGIN { @ = llquantize(1, 10, 0, 3, 15) }"),
    ("D_LLQUANT_FACTORNSTEPS", "BEGIN { @ = llquantize(1, 10, 0, 3, 5) }"),
    ("D_LLQUANT_MAGTOOBIG", "BEGIN { @ = llquantize(1, 10, 0, 30, 10) }"),
    ("D_LQUANT_STEPSMALL", "BEGIN { @ = lquantize(1, 0, 100000) }"),
    ("D_LQUANT_STEPTYPE", "BEGIN { @ = lquantize(1, 0, 10, pid) }"),
    ("D_LQUANT_STEPVAL", "BEGIN { @ = lquantize(1, 0, 10, 70000) }"),
    ("D_LQUANT_LIMTYPE", "BEGIN { @ = lquantize(1, 10, pid) }"),
    ("D_LQUANT_LIMVAL", "BEGIN { @ = lquantize(1, 0, 0x100000000) }"),
    ("D_LQUANT_BASEVAL", "BEGIN { @ = lquantize(1, 0x100000000, 3) }"),
    ("D_OFFSETOF_BITFIELD", "struct s { int a:3; }; BEGIN { trace(offsetof(struct s, a)) }"),
    ("D_SIZEOF_BITFIELD", "struct s { int a:3; }; struct s *p; BEGIN { trace(sizeof (p->a)) }"),
    ("D_PRINTA_AGGPROTO", "BEGIN { @a[1] = count(); @b[execname] = count(); printa(@a, @b) }"),
    ("D_TRACEMEM_ARGS", "BEGIN { tracemem(arg0, 8, 1, 2) }"),
    ("D_TRACEMEM_DYNSIZE", 'BEGIN { tracemem(arg0, 8, "a") }'),
    ("D_USTACK_STRSIZE", "BEGIN { ustack(1, pid) }"),
    ("D_PRINT_VOID", "BEGIN { print((void)1) }"),
    ("D_PRINT_AGG", "BEGIN { @ = count(); print(@) }"),
    ("D_TRUNC_SCALAR", 'BEGIN { @ = count(); trunc(@, "a") }'),
    ("D_TRUNC_AGGARG", "BEGIN { trunc(1) }"),
    ("D_NORMALIZE_SCALAR", 'BEGIN { @ = count(); normalize(@, "a") }'),
    ("D_NORMALIZE_AGGARG", "BEGIN { normalize(1, 2) }"),
    ("D_ARGS_NONE", "inline int x = args[0];"),
    ("D_ARGS_IDX", "BEGIN { trace(args[0]) }"),
    ("D_PROTO_ARG", "BEGIN { trace(args[pid]) }"),
    ("D_PRAGMA_MALFORM", "#pragma D option\nBEGIN { }"),
    ("D_PRAGMA_MALFORM", "#pragma D binding x\nBEGIN { }"),
    ("D_PRAGMA_INVAL", "int x;\n#pragma D attributes Stable/Stable x\nBEGIN { }"),
    ("D_PRAGMA_INVAL", "int x;\n#pragma D binding 1.0 x\nBEGIN { }"),
    ("D_PRAGMA_UNUSED", "#pragma D attributes Stable/Stable/Common nosuch\nBEGIN { }"),
    ("D_PRAGMA_UNUSED", "#pragma D attributes Stable/Stable/Common provider nosuch args\nBEGIN { }"),
    ("D_PRAGMA_SCOPE", "#pragma D attributes Stable/Stable/Common pid\nBEGIN { }"),
    ("D_PRAGMA_DEPEND", "#pragma D depends_on library io.d\nBEGIN { }"),
    ("D_NOREG", "BEGIN { trace(pid+(pid+(pid+(pid+(pid+(pid+(pid+(pid+pid)))))))) }"),
    ("D_PRAGMA_OPTSET", "#pragma D option nosuch\nBEGIN { }"),
    ("D_PRAGMA_INVAL", "#pragma D nosuch\nBEGIN { }"),
    ("D_PRAGCTL_INVAL", "#define X 1\nBEGIN { }"),
    ("D_PRAGERR", "#error no\nBEGIN { }"),
]


@pytest.mark.parametrize(("tag", "text"), REFUSED, ids=[f"{tag}-{index}" for index, (tag, _) in enumerate(REFUSED)])
def test_a_program_is_refused_with_its_tag(tag, text):
    assert tag_of(text) == tag


@pytest.mark.parametrize("text", [text for _, text in REFUSED if "PRINTF_ARG_TYPE" not in _])
def test_a_refusal_is_one_line_with_its_place(text):
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    shown = caught.value.text(errtags=False)
    assert "\n" not in shown
    assert shown.startswith("line ")


def test_the_command_line_has_regions_and_no_lines():
    with pytest.raises(CompileError, match="in predicate: failed to resolve nosuch"):
        compile_text("BEGIN /nosuch/ { }", form=Form.NAME)


def test_a_name_misspelt_is_answered_with_the_right_one():
    with pytest.raises(CompileError, match=r"did you mean execname\?"):
        compile_text("BEGIN { trace(execnam) }")


def test_no_match_is_an_error_unless_it_is_allowed():
    assert tag_of("nosuch { }", probes=lambda _wanted: ()) == "D_PDESC_ZERO"
    assert tag_of("nosuch { }", probes=lambda _wanted: (), options=["zdefs"]) == ""


def test_an_argument_that_is_never_used_is_an_error_unless_it_is_allowed():
    how = {"arguments": ("d", "1", "2")}
    assert tag_of("BEGIN { trace($1) }", **how) == "D_MACRO_UNUSED"
    assert tag_of("BEGIN { trace($1 + $2) }", **how) == ""
    assert tag_of("BEGIN { trace($1) }", options=["argref"], **how) == ""


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (Form.NAME, "entry", ("", "", "", "entry")),
        (Form.NAME, "f:entry", ("", "", "f", "entry")),
        (Form.NAME, "m:f:entry", ("", "m", "f", "entry")),
        (Form.NAME, "fbt::f:", ("fbt", "", "f", "")),
        (Form.FUNCTION, "f", ("", "", "f", "")),
        (Form.FUNCTION, "fbt:m:f", ("fbt", "m", "f", "")),
        (Form.MODULE, "fbt:m", ("fbt", "m", "", "")),
        (Form.PROVIDER, "fbt", ("fbt", "", "", "")),
    ],
)
def test_fields_of_a_description_count_from_the_right(form, text, expected):
    probe = compile_text(text, form=form).ecbs[0].probe
    assert (probe.provider, probe.module, probe.function, probe.name) == expected
