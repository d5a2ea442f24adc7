"""Expressions computed by DIF give what C gives, by way of the compiler and the DIF machine together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.some import some
from tests.trapline.d.support import Calculator, compile_text
from trapline.framework.base.arithmetic import divide, remainder

MASK = (1 << 64) - 1
CALCULATOR = Calculator()


def signed(value):
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
    "^^": lambda a, b: bool(a) != bool(b),
}
SMALL = st.integers(-1000, 1000)


@st.composite
def expressions(draw, depth=3):
    """An expression of 64-bit variables and constants, and its value."""
    if depth == 0 or draw(st.booleans()):
        value = draw(SMALL)
        return (f"({value}ll)" if draw(st.booleans()) else f"(zero + {value})"), value
    kind = draw(st.sampled_from([*OPERATORS, "~", "neg", "!", "?", "/", "%", "<<", ">>"]))
    left, a = draw(expressions(depth=depth - 1))
    if kind in {"~", "neg", "!"}:
        result = {"~": ~a, "neg": -a, "!": int(not a)}[kind]
        return f"({'-' if kind == 'neg' else kind}{left})", signed(result)
    right, b = draw(expressions(depth=depth - 1))
    if kind == "?":
        third, c = draw(expressions(depth=depth - 1))
        return f"({left} ? {right} : {third})", b if a else c
    if kind in {"/", "%"}:
        b = b or 7
        quotient = divide(a, b) if kind == "/" else remainder(a, b)
        return f"({left} {kind} (zero + {b}))", signed(quotient)
    if kind in {"<<", ">>"}:
        count = b & 15
        return f"((int64_t){left} {kind} (zero + {count}))", signed(a << count if kind == "<<" else a >> count)
    return f"({left} {kind} {right})", signed(int(OPERATORS[kind](a, b)))


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_integer_expressions_give_what_c_gives(drawn):
    text, value = drawn
    device = CALCULATOR.run(f"int64_t zero; BEGIN {{ trace((int64_t)({text})); }}")
    record = device.buffer_snapshot(0).data
    device.close()
    assert signed(int.from_bytes(record[16:24], "little")) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("1 || 0 && 0", 1),
        ("1 ^^ 1 || 1", 1),
        ("2 + 3 << 1", 10),
        ("sizeof (int)", 4),
        ("sizeof (string)", 256),
        ('sizeof ("four")', 5),
        ("sizeof (struct { char a; int b; char c; })", 12),
        ("offsetof(struct { char a; long b; }, b)", 8),
        ("(char)300", 44),
        ("(unsigned char)-1", 255),
        ("(short)0x18000", -32768),
        ("'a'", 97),
        ("'ab'", 0x6162),
        ("0x10 + 010 + 10", 34),
        ('"abc" == "abc"', 1),
        ('"abc" < "abd"', 1),
        ('"abc" != "abc"', 0),
        ('strlen("hello")', 5),
        ('index("hello", "l")', 2),
        ('strtoll("42")', 42),
        ("(int64_t)(uint32_t)-1", 0xFFFFFFFF),
    ],
)
def test_expressions_of_many_kinds(text, value):
    assert signed(CALCULATOR.value(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int x; BEGIN { x = 5; x += 2; x++; trace((int64_t)x); }", 8),
        ("BEGIN { this->x = 3; trace((int64_t)(this->x-- * 10 + this->x)); }", 32),
        ("BEGIN { self->x = 7; self->x *= 6; trace((int64_t)self->x); }", 42),
        ('BEGIN { a["k", 1] = 5; a["k", 2] = 6; trace((int64_t)(a["k", 1] * 10 + a["k", 2] + a["j", 1])); }', 56),
        ("char c; BEGIN { c = 200; trace((int64_t)c); }", -56),
        ("int64_t x; BEGIN { x = 0; x ? (x = 1) : (x = 2); trace(x); }", 2),
        ("inline int N = 4; BEGIN { trace((int64_t)(N * N)); }", 16),
        ("inline int twice[int n] = n + n; BEGIN { trace((int64_t)twice[21]); }", 42),
        ("enum e { A, B = 5, C }; BEGIN { trace((int64_t)(A + B * 10 + C * 100)); }", 650),
        ("struct p { int x; int y; }; struct p p; BEGIN { p.x = 3; p.y = 4; trace((int64_t)(p.x * 10 + p.y)); }", 34),
        ("BEGIN { x = (int *)alloca(8); x[0] = 11; x[1] = 22; trace((int64_t)(x[0] + *(x + 1))); }", 33),
        ('string s; BEGIN { s = "abc"; trace((int64_t)(s == "abc" && s != "abd")); }', 1),
    ],
)
def test_variables_keep_what_is_assigned(text, value):
    device = CALCULATOR.run(text)
    record = device.buffer_snapshot(0).data
    assert signed(int.from_bytes(record[16:24], "little")) == value
    assert device.status().errors == 0
    device.close()


def test_constants_are_folded():
    program = compile_text("BEGIN { trace(2 + 3 * 4 == 14 ? 1 : 0); }")
    assert len(program.ecbs[0].actions[0].difo.code) == 2


def test_a_clause_local_is_shared_by_the_clauses_of_a_firing():
    device = CALCULATOR.run("BEGIN { this->x = 5; } BEGIN { trace((int64_t)this->x); }")
    assert int.from_bytes(device.buffer_snapshot(0).data[16:24], "little") == 5
    device.close()


def test_programs_of_one_consumer_share_their_variables():
    from trapline.d.check.scopes import Globals

    names = Globals()
    compile_text("int shared; BEGIN { shared = 1; @a = count(); }", names=names)
    second = compile_text("BEGIN { trace(shared); @b = count(); }", names=names)
    assert second.aggregations == ("a", "b")


BRANCHES = [
    ("if (arg1 == 1) trace((int64_t)10); else trace((int64_t)20);", {0: [20], 1: [10], 2: [20]}),
    ("if (arg1) { if (arg1 > 1) trace(2ll); else trace(1ll); } trace(9ll);", {0: [9], 1: [1, 9], 2: [2, 9]}),
    ("if (arg1 == 0) trace(0ll); else if (arg1 == 1) trace(1ll); else trace(2ll);", {0: [0], 1: [1], 2: [2]}),
    ("x = arg1; if (x) x = 0; else x = 7; trace((int64_t)x);", {0: [7], 1: [0], 2: [0]}),
    ("if (arg1) ; trace(3ll);", {0: [3], 1: [3]}),
    ("trace(1ll); if (arg1) { trace(1 / (int64_t)(arg1 - 1)); } trace(5ll);", {0: [1, 5], 1: [1], 2: [1, 1, 5]}),
]


@pytest.mark.parametrize(("body", "expected"), BRANCHES, ids=[body for body, _ in BRANCHES])
def test_branches_run_what_they_should_and_nothing_after_a_fault(body, expected):
    from tests.trapline.framework.support import Bench

    for value, numbers in some(expected.items()):
        bench = Bench(f"f:entry {{ {body} }}")
        bench.fire(bench.f, 0, value)
        assert bench.numbers() == numbers


def test_the_predicate_of_a_clause_with_branches_holds_for_all_of_it():
    from tests.trapline.framework.support import Bench

    bench = Bench("int64_t n; f:entry /n == 0/ { n = 1; if (arg0) trace(1ll); else trace(2ll); trace(3ll); }")
    bench.fire(bench.f, 1)
    bench.fire(bench.f, 1)
    assert bench.numbers() == [1, 3]
