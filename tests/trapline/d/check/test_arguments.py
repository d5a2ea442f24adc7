"""The arguments of subroutines, actions, aggregating functions and built-in arrays, checked one by one.

The prototypes are those of FreeBSD libdtrace dt_open.c; the checks and their order are those of
dt_idcook_sign(), dt_idcook_regs() (dt_ident.c) and of the dt_action functions (dt_cc.c).
"""

from __future__ import annotations

import pytest

from tests.trapline.d.support import tag_of

ROWS = [
    ("trace(uregs[1, 2])", "D_PROTO_LEN"),
    ("trace(uregs[pid])", "D_PROTO_ARG"),
    ('trace(uregs["a"])', "D_PROTO_ARG"),
    ("trace(uregs[-1])", "D_REGS_IDX"),
    ("trace(args[0, 1])", "D_PROTO_LEN"),
    ('trace(args["x"])', "D_PROTO_ARG"),
    ("trace(args[pid])", "D_PROTO_ARG"),
    ('@ = lquantize(1, "a", 2)', "D_PROTO_ARG"),
    ("@ = lquantize(1, 2)", "D_PROTO_LEN"),
    ("@ = lquantize(1, 2, 3, 1, 1, 1)", "D_PROTO_LEN"),
    ("@ = lquantize(1, pid, 3)", "D_LQUANT_BASETYPE"),
    ("@ = llquantize(1, 10, 0, 6)", "D_PROTO_LEN"),
    ("@ = llquantize(1, 10, 0, 6, 20, 1, 1)", "D_PROTO_LEN"),
    ("@ = quantize()", "D_PROTO_LEN"),
    ("@ = quantize(1, 1, 1)", "D_PROTO_LEN"),
    ('@ = quantize(1, "a")', "D_PROTO_ARG"),
    ("@ = count(1)", "D_PROTO_LEN"),
    ("@ = sum()", "D_PROTO_LEN"),
    ('@ = sum("a")', "D_AGG_SCALAR"),
    ("tracemem(0)", "D_PROTO_LEN"),
    ('tracemem("a", 4, 1, 2)', "D_TRACEMEM_ADDR"),
    ("tracemem(0, pid, 1, 2)", "D_TRACEMEM_SIZE"),
    ("tracemem(0, sizeof (pid))", "D_TRACEMEM_SIZE"),
    ("tracemem(0, sizeof (int), 1, 2)", "D_TRACEMEM_ARGS"),
    ('tracemem(0, 4, "a")', "D_TRACEMEM_DYNSIZE"),
    ('tracemem(0, "x")', "D_PROTO_ARG"),
    ("printm(0, 1)", "D_PROTO_ARG"),
    ("printm(pid, memref(0, 1))", "D_PRINTM_SIZE"),
    ('stack("a")', "D_STACK_SIZE"),
    ("stack(1, 2)", "D_STACK_PROTO"),
    ("ustack(1, -1)", "D_USTACK_STRSIZE"),
    ("ustack(0)", "D_USTACK_FRAMES"),
    ("ustack(1, 2, 3)", "D_USTACK_PROTO"),
    ("exit()", "D_PROTO_LEN"),
    ('exit("a")', "D_PROTO_ARG"),
    ("setopt(1)", "D_PROTO_ARG"),
    ('setopt("a", 1)', "D_PROTO_ARG"),
    ('raise("a")', "D_PROTO_ARG"),
    ("chill()", "D_PROTO_LEN"),
    ('commit("a")', "D_PROTO_ARG"),
    ('sym("a")', "D_PROTO_ARG"),
    ("sym((void *)1)", "D_PROTO_ARG"),
    ("sym((uintptr_t)1)", ""),
    ("trace(strlen(1))", "D_PROTO_ARG"),
    ("trace(strlen(0))", ""),
    ("trace(strlen((void *)1))", ""),
    ("trace(copyin((void *)1, 2))", "D_PROTO_ARG"),
    ("trace(bcopy(1, 2, 3))", "D_PROTO_ARG"),
    ('bcopy("a", alloca(2), 2)', ""),
    ("trace(inet_ntoa((int *)1))", "D_PROTO_ARG"),
    ("trace(inet_ntoa((char *)1))", "D_PROTO_ARG"),
    ("trace(inet_ntoa((uint32_t *)1))", ""),
    ("trace(inet_ntoa((void *)1))", ""),
    ("trace(inet_ntoa(1))", "D_PROTO_ARG"),
    ('trace(strchr("a", "b"))', "D_PROTO_ARG"),
    ('trace(substr("a", "b"))', "D_PROTO_ARG"),
    ('trace(lltostr("a"))', "D_PROTO_ARG"),
    ('trace(index("a"))', "D_PROTO_LEN"),
    ('trace(index("a", "b", "c"))', "D_PROTO_ARG"),
    ('trace(index("a", "b", 1, 2))', "D_PROTO_LEN"),
    ("trace(rand(1))", "D_PROTO_LEN"),
    ('trace(json("a"))', "D_PROTO_LEN"),
    ("clear()", "D_CLEAR_PROTO"),
    ("trunc(1)", "D_TRUNC_AGGARG"),
    ('@a = count(); trunc(@a, "x")', "D_TRUNC_SCALAR"),
    ("@a = count(); normalize(@a)", "D_NORMALIZE_PROTO"),
    ("printf()", "D_PROTO_LEN"),
    ("printf(1)", "D_PRINTF_ARG_FMT"),
    ('printa("x")', "D_PRINTA_PROTO"),
    ("system(1)", "D_PRINTF_ARG_FMT"),
    ("ftruncate(1)", "D_PROTO_LEN"),
    ("stop(1)", "D_PROTO_LEN"),
    ('x[1] = 1; x["a"] = 2', "D_PROTO_ARG"),
    ("x[1] = 1; x[1, 2] = 2", "D_PROTO_LEN"),
    ("x[1] = 1; trace(x[(void *)0])", "D_PROTO_ARG"),
    ('x["a"] = 1; trace(x[0])', ""),
    ("this->p = (char *)alloca(14); trace(f[this->p])", ""),
    ('trace(f["text"])', ""),
    ("trace(f[1])", "D_PROTO_ARG"),
    ("trace(f[(int *)0])", "D_PROTO_ARG"),
    ('trace(g["a", 1])', "D_PROTO_ARG"),
    ("trace(g[(void *)0, 1])", ""),
    ("trace(g[0, 1])", ""),
    ("trace(g[(int *)0])", "D_PROTO_LEN"),
]
INLINES = "inline int f[char d[14]] = d[0]; inline int g[int *p, uint8_t n] = p == NULL ? n : *p;"


@pytest.mark.parametrize(("statements", "tag"), ROWS)
def test_arguments_are_refused_with_libdtraces_tag(statements, tag):
    assert tag_of(f"{INLINES} BEGIN {{ {statements}; }}") == tag
