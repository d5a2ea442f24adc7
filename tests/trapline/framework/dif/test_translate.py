"""A translated DIF object does the same as the DIF machine: result, faults, and variables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trapline.d.support import compile_text
from tests.trapline.framework.support import Bench
from trapline.dof import encode
from trapline.framework.base.dif import Op, encode_branch, encode_index, encode_registers
from trapline.framework.base.program import Difo
from trapline.framework.dif.interpreter import Loaded
from trapline.framework.dif.translate import translate

BENCH = Bench()
WORDS = st.one_of(st.integers(0, 20), st.integers(0, (1 << 64) - 1))
THREE = [Op.OR, Op.XOR, Op.AND, Op.SLL, Op.SRL, Op.SRA, Op.SUB, Op.ADD, Op.MUL, Op.SDIV, Op.UDIV, Op.SREM, Op.UREM]
BRANCHES = [op for op in Op if op.name.startswith("B")]
REGISTERS = st.integers(1, 7)


@st.composite
def objects(draw):
    """A DIF object of arithmetic, comparisons, forward branches and loads from anywhere."""
    length = draw(st.integers(1, 25))
    code = [encode_index(Op.SETX, number, number + 1) for number in range(4)]
    end = len(code) + length
    for place in range(len(code), end):
        kind = draw(st.sampled_from(["three", "three", "compare", "branch", "two", "load"]))
        a, b, c = draw(REGISTERS), draw(REGISTERS), draw(REGISTERS)
        if kind == "three":
            code.append(encode_registers(draw(st.sampled_from(THREE)), a, b, c))
        elif kind == "two":
            code.append(encode_registers(draw(st.sampled_from([Op.NOT, Op.MOV])), a, 0, c))
        elif kind == "compare":
            op = draw(st.sampled_from([Op.CMP, Op.TST]))
            code.append(encode_registers(op, a, b if op is Op.CMP else 0, 0))
        elif kind == "branch":
            code.append(encode_branch(draw(st.sampled_from(BRANCHES)), draw(st.integers(place + 1, end))))
        else:
            code.append(encode_registers(draw(st.sampled_from([Op.LDUB, Op.LDSW, Op.LDX])), a, 0, c))
    code.append(encode_registers(Op.RET, 0, 0, draw(REGISTERS)))
    return Difo(tuple(code), tuple(draw(WORDS) for _ in range(4)))


def outcome(run, context, core):
    core.flags = 0
    context.fault_offset = -1
    context.args = (1, 2, 3, 4, 5)
    context.scratch_base = context.scratch_ptr = context.scratch_end = 0
    result = run()
    return (result if not core.flags else 0), core.flags, context.fault_offset


@settings(max_examples=300, deadline=None)
@given(objects())
def test_the_translation_does_what_the_machine_does(difo):
    device = BENCH.device.runtime
    loaded = Loaded(difo, 0)
    context, core = device.context, device.world.core
    function = translate(device.machine, loaded)
    machine = outcome(lambda: device.machine.run(loaded, context), context, core)
    assert outcome(lambda: function(context), context, core) == machine


PROGRAMS = [
    "trace((int64_t)(arg0 ? arg1 / arg2 : arg3));",
    'trace(execname == "sh" && probefunc != "g");',
    "x = arg0; x += arg1; trace((int64_t)x);",
    "this->y = arg0 * 3; trace((int64_t)this->y);",
    "self->z[arg0] = arg1; trace((int64_t)self->z[arg0]);",
    's = strjoin(execname, "!"); trace((int64_t)strlen(s));',
    "trace((int64_t)*(int *)arg0);",
    's = execname; s = s == "sh" ? "shell" : "other"; this->t = s; trace(strlen(this->t = strjoin(this->t, s)));',
    "p = (int *)alloca(16); p[1] = arg0; trace((int64_t)p[1]);",
    'trace((int64_t)index(execargs, "ls"));',
]


@pytest.mark.parametrize("body", PROGRAMS)
@pytest.mark.parametrize("args", [(0, 0, 0, 0, 0), (1, 7, 2, 0, 0), ((1 << 64) - 1, 5, 0, 3, 4)])
def test_programs_do_the_same_translated_and_interpreted(body, args, monkeypatch):
    def run(interpreted):
        if interpreted:
            monkeypatch.setattr(
                "trapline.framework.dif.functions.translate",
                lambda machine, loaded: lambda ctx: machine.run(loaded, ctx),
            )
        bench = Bench(f"f:entry {{ {body} }} ERROR {{ trace(arg3); trace(arg4); trace(arg5); }}")
        monkeypatch.undo()
        bench.fire(bench.f, *args)
        return [(epid, data) for epid, _, data in bench.records()], bench.device.status().errors

    assert run(interpreted=True) == run(interpreted=False)


def test_a_program_of_several_clauses_is_translated_once_for_all_its_probes():
    bench = Bench()
    bench.device.enable(encode(compile_text("test:::entry { trace(arg0 + 1); }")))
    f, g = (bench.dtrace.enablings(bench.dtrace.table.get(number)) for number in (bench.f, bench.g))
    assert len({ecb.clause for ecb in f}) == 1
    assert f[0].clause is g[0].clause
