"""Programs that are long or deep: compiled in linear time, or refused in one line."""

from __future__ import annotations

from itertools import pairwise
from time import process_time

import pytest

from tests.support.memory import measured
from tests.trapline.d.support import compile_text, tag_of
from trapline.consumer.program.preprocess import PreprocessorError, preprocess
from trapline.d.compiler import CompileContext, compile_program
from trapline.d.errors import CompileError
from trapline.d.parse.ast import DEPTH_MAX
from trapline.options import OptionError, Options

LONG = 2_000
# Seconds: linear time takes a tenth, quadratic time several times as long.
PATIENCE = 10

DEEP = {
    "casts": ("(int)", "pid", ""),
    "negations": ("!", "pid", ""),
    "indices": ("", "p", "[0]"),
    "arrows": ("", "p", "->next"),
    "assignments": ("a = ", "1", ""),
    "calls": ("basename(", "execname", ")"),
    "choices": ("pid ? 1 : ", "2", ""),
    "sums": ("", "pid", " + pid"),
    "commas": ("(1, ", "2", ")"),
}


@pytest.mark.parametrize(
    "text",
    [
        ", ".join(["BEGIN"] * LONG) + " { x = 1; }",
        "BEGIN { " + "x++; " * LONG + "}",
        "BEGIN { x++; }\n" * LONG,
        "".join(f"int v{number};\n" for number in range(LONG)) + "BEGIN { }",
        "BEGIN { " + "".join(f"v{number} = 1; " for number in range(LONG)) + "}",
        "BEGIN { " + "if (pid) { x = 1; } " * (LONG // 10) + "}",
    ],
    ids=["descriptions", "statements", "clauses", "declarations", "variables", "branches"],
)
def test_a_long_program_takes_linear_time(text):
    started = process_time()
    compile_text(text)
    assert process_time() - started < PATIENCE


@pytest.mark.parametrize("shape", DEEP)
def test_what_is_nested_too_deeply_is_refused(shape):
    before, inner, after = DEEP[shape]
    text = before * DEPTH_MAX + inner + after * DEPTH_MAX
    with pytest.raises(CompileError, match="nested too deeply") as caught:
        compile_text(f"int a; BEGIN {{ trace({text}); }}")
    assert caught.value.tag == "D_SYNTAX"


@pytest.mark.parametrize("shape", ["casts", "negations", "assignments", "choices", "sums"])
def test_what_is_just_not_too_deep_compiles(shape):
    before, inner, after = DEEP[shape]
    depth = DEPTH_MAX // 2
    compile_text(f"int a; BEGIN {{ trace({before * depth + inner + after * depth}); }}")


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN { " + "if (pid) { " * DEPTH_MAX + "}" * DEPTH_MAX + "}",
        "BEGIN { " + "if (pid) { x = 1; } else " * DEPTH_MAX + "x = 1; }",
        "struct { " * DEPTH_MAX + "int a; " + "} b; " * DEPTH_MAX,
        "int " + "*" * DEPTH_MAX + "p;",
        "int p" + "[1]" * DEPTH_MAX + ";",
    ],
    ids=["if", "else if", "struct", "pointer", "array"],
)
def test_statements_and_declarations_are_not_nested_too_deeply_either(text):
    with pytest.raises(CompileError, match="nested too deeply"):
        compile_text(text)


def test_inlines_that_stand_for_one_another_too_often_are_refused():
    lines = ["inline int v0 = pid;", *(f"inline int v{n} = v{n - 1} + 1;" for n in range(1, 20 * DEPTH_MAX))]
    with pytest.raises(CompileError, match="refer to each other through too many levels"):
        compile_text("\n".join(lines) + f"BEGIN {{ trace(v{20 * DEPTH_MAX - 1}); }}")


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("D_SYNTAX", 'BEGIN {{ printf("%{}d", 1); }}'),
        ("D_MACRO_UNDEF", "BEGIN {{ trace(${}); }}"),
        ("D_INT_OFLOW", "BEGIN {{ trace({}); }}"),
        ("D_INT_OFLOW", "BEGIN {{ trace(0{}); }}"),
        ("D_INT_OFLOW", "BEGIN {{ trace(0x{}); }}"),
        ("D_PDESC_INVAL", "{} {{ }}"),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused(tag, text):
    assert tag_of(text.format("1" * 10_000)) == tag


def test_only_the_digits_of_ascii_are_digits():
    assert tag_of("BEGIN { trace(1\N{SUPERSCRIPT TWO}); }") == "D_SYNTAX"
    assert tag_of("BEGIN { trace($1\N{SUPERSCRIPT TWO}); }", arguments=("d", "5")) == "D_SYNTAX"
    assert tag_of("BEGIN { trace(\N{ARABIC-INDIC DIGIT ONE}); }") == "D_SYNTAX"


@pytest.mark.parametrize(
    "program",
    [
        "struct s { char a[2000000000][2000000000]; }; BEGIN { trace(*(struct s *)0); }",
        "struct s { char a[2000000000]; char b[2000000000]; char c[2000000000]; }; BEGIN { print(*(struct s *)0); }",
        "struct s { char a[2000000000]; char b[2000000000]; char c[2000000000]; }; struct s x; BEGIN { x = x; }",
    ],
    ids=["dimensions", "members", "variable"],
)
def test_a_value_larger_than_dif_describes_is_refused(program):
    with pytest.raises(CompileError, match="is too large: at most 4294967295") as caught:
        compile_text(program)
    assert caught.value.tag == "D_DECL_ARRBIG"


def test_a_long_string_costs_no_more_than_its_length():
    text = 'BEGIN { trace("' + "x" * 2_000_000 + '"); }'
    with measured() as memory:
        compile_text(text)
    assert len(text) < memory.peak < 200 << 20


def test_macros_that_grow_without_measure_are_refused():
    names = "ABCDEFGH"
    lines = [f"#define {one} {' '.join([two] * 10)}" for one, two in pairwise(names)]
    with pytest.raises(PreprocessorError, match="macros expand to more than"):
        preprocess("\n".join(lines) + "\nBEGIN { trace(A); }", "script.d", Options())


def test_registers_that_no_instruction_can_name_are_not_made():
    options = Options()
    options.set("iregs", "2147483648")
    options.set("zdefs")  # BEGIN is nobody's here
    with measured() as memory:
        compile_program("BEGIN { trace(pid + 1); }", CompileContext(options))
    assert 0 < memory.peak < 50 << 20


@pytest.mark.parametrize("size", ["4g", "0", None])
def test_a_size_of_strings_that_dif_cannot_describe_is_refused(size):
    with pytest.raises(OptionError, match="Invalid value"):
        Options().set("strsize", size)
    Options().set("strsize", "4095m")
