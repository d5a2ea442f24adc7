"""DIF as text is libdtrace's, to the letter."""

from __future__ import annotations

import textwrap

from tests.trapline.d.support import compile_text
from trapline.d.codegen.disassemble import disassemble_program
from trapline.framework.base.dif import FORMATS, Op


def shown(text):
    return disassemble_program(compile_text(text), 256)


def test_the_best_known_example():
    assert shown("BEGIN { trace(execname); }") == textwrap.dedent("""
        DIFO 0x1 returns string (unknown) by ref (size 256)
        OFF OPCODE      INSTRUCTION
        00: 29011801    ldgs DT_VAR(280), %r1\t\t! DT_VAR(280) = "execname"
        01: 23000001    ret  %r1

        NAME             ID   KND SCP FLAG TYPE
        execname         118  scl glb r    string (unknown) by ref (size 256)
        """)


def test_constants_strings_calls_and_branches():
    text = shown('BEGIN /strlen(probename) == 5 && self->x/ { self->x = 42; @["k"] = count(); }')
    for line in (
        "setx DT_INTEGER[0], %r1\t\t! 0x2a",
        'stts %r1, DT_VAR(1280)\t\t! DT_VAR(1280) = "x"',
        'sets DT_STRING[1], %r1\t\t! "k"',
        "call DIF_SUBR(12), %r1\t\t! strlen",
        "pushtr DT_TYPE(1), %r0, %r1\t\t! DT_TYPE(1) = string",
        "flushts",
        "cmp  %r1, %r2",
    ):
        assert any(row.endswith(line) for row in text.splitlines()), (line, text)
    assert "x                500  scl tls w    D type (integer) (size 4)" in text


def test_every_format_of_an_instruction_can_be_written():
    from trapline.d.codegen.disassemble import _OPERANDS

    assert {FORMATS[op] for op in Op} <= set(_OPERANDS)
