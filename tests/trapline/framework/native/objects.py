"""Random DIF objects."""

from __future__ import annotations

from hypothesis import strategies as st

from trapline.framework.dif import Op, Var, encode_branch, encode_index, encode_registers
from trapline.framework.program import Difo, TypeKind

WORDS = st.one_of(st.integers(0, 20), st.integers(0, (1 << 64) - 1), st.sampled_from([1 << 63, (1 << 64) - 1]))
REGISTERS = st.integers(1, 7)
THREE = [Op.OR, Op.XOR, Op.AND, Op.SLL, Op.SRL, Op.SRA, Op.SUB, Op.ADD, Op.MUL, Op.SDIV, Op.UDIV, Op.SREM, Op.UREM]
BRANCHES = [op for op in Op if op.name.startswith("B")]
LOADS = [op for op in Op if op.name.startswith(("LDS", "LDU", "LDX", "ULD", "RLD"))]
STORES = [Op.STB, Op.STH, Op.STW, Op.STX]
BUILTINS = [Var.ARG0, Var.ARG3, Var.ARG7, Var.PID, Var.TIMESTAMP, Var.EXECNAME, Var.PROBEFUNC, Var.EPID, Var.CPU]


def _three(draw, _place, _end):
    return encode_registers(draw(st.sampled_from(THREE)), draw(REGISTERS), draw(REGISTERS), draw(REGISTERS))


def _two(draw, _place, _end):
    return encode_registers(draw(st.sampled_from([Op.NOT, Op.MOV, *LOADS])), draw(REGISTERS), 0, draw(REGISTERS))


def _compare(draw, _place, _end):
    op = draw(st.sampled_from([Op.CMP, Op.TST, Op.SCMP]))
    return encode_registers(op, draw(REGISTERS), 0 if op is Op.TST else draw(REGISTERS), 0)


def _branch(draw, place, end):
    return encode_branch(draw(st.sampled_from(BRANCHES)), draw(st.integers(place + 1, end)))


def _store(draw, _place, _end):
    return encode_registers(draw(st.sampled_from(STORES)), draw(REGISTERS), 0, draw(REGISTERS))


def _allocate(draw, _place, _end):
    if draw(st.booleans()):
        return encode_registers(Op.ALLOCS, draw(REGISTERS), 0, draw(REGISTERS))
    return encode_registers(Op.COPYS, draw(REGISTERS), draw(REGISTERS), draw(REGISTERS))


def _constant(draw, _place, _end):
    op = draw(st.sampled_from([Op.SETX, Op.SETS]))
    return encode_index(op, draw(st.integers(0, 3)), draw(REGISTERS))


def _builtin(draw, _place, _end):
    return encode_index(Op.LDGS, draw(st.sampled_from(BUILTINS)), draw(REGISTERS))


def _tuple(draw, _place, _end):
    op = draw(st.sampled_from([Op.PUSHTV, Op.PUSHTV, Op.PUSHTR, Op.POPTS, Op.FLUSHTS]))
    if op in {Op.POPTS, Op.FLUSHTS}:
        return encode_registers(op, 0, 0, 0)
    kind = draw(st.sampled_from([TypeKind.CTF, TypeKind.STRING])) if op is Op.PUSHTR else TypeKind.CTF
    return encode_registers(op, kind, draw(REGISTERS), draw(REGISTERS))


KINDS = [
    _three, _three, _two, _compare, _compare, _branch, _branch, _store, _store, _allocate, _constant, _builtin, _tuple,
    _tuple,
]  # fmt: skip


@st.composite
def objects(draw):
    """A valid DIF object: arithmetic, comparisons, forward branches, loads and stores, pushes."""
    code = [encode_index(Op.SETX, number, number + 1) for number in range(4)]
    end = len(code) + draw(st.integers(1, 25))
    code += [draw(st.sampled_from(KINDS))(draw, place, end) for place in range(len(code), end)]
    code.append(encode_registers(Op.RET, 0, 0, draw(REGISTERS)))
    return Difo(tuple(code), tuple(draw(WORDS) for _ in range(4)), b"\0ab\0")
