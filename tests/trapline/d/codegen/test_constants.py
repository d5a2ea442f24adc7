"""Operators on constants and on variables, of all integer types, against a model of libdtrace.

The model restates dt_node_op1(), dt_node_op2(), dt_cast() and dt_type_promote() (FreeBSD libdtrace
dt_parser.c) and the instructions of dt_cg.c: what the parser folds is not always what the same
operation gives at run time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tests.support.some import some
from tests.trapline.d.reference.scene import run_scene

MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Kind:
    name: str
    size: int
    signed: bool
    order: int = 0
    """Decides between types of one rank: that of the later declaration."""


INT = Kind("int", 4, signed=True)
ENUM = Kind("enum e", 4, signed=False)
KINDS = [
    Kind("char", 1, signed=True),
    Kind("uint8_t", 1, signed=False),
    Kind("short", 2, signed=True),
    Kind("unsigned short", 2, signed=False),
    INT,
    Kind("uint32_t", 4, signed=False),
    Kind("long", 8, signed=True),
    Kind("unsigned long", 8, signed=False),
    Kind("long long", 8, signed=True, order=1),
    ENUM,
]


@dataclass(frozen=True)
class Node:
    """A value in a register of 64 bits, or a constant of the parser."""

    value: int
    kind: Kind
    constant: bool

    def as_signed(self):
        return self.value - (1 << 64) if self.value >> 63 else self.value


def cast(node, kind):
    """dt_cast() for a constant, dt_cg_typecast() for a register."""
    source, target = node.kind.size, kind.size
    low = node.value & ((1 << 8 * min(source, target)) - 1)
    if node.constant:
        if source == target:
            low = node.value
        elif target > source and node.kind.signed and low >> 8 * source - 1:
            low |= ((1 << 8 * target) - 1) & ~((1 << 8 * source) - 1)
        return Node(low, kind, constant=True)
    if (source == target and node.kind.signed != kind.signed) or (target > source and not node.kind.signed):
        return Node(node.value, kind, constant=False)
    if target > source:
        if low >> 8 * source - 1:
            low |= ((1 << 8 * target) - 1 if not kind.signed else MASK) & ~((1 << 8 * source) - 1)
    elif kind.signed and low >> 8 * target - 1:
        low |= MASK & ~((1 << 8 * target) - 1)
    return Node(low, kind, constant=False)


def promote(left, right):
    left, right = (INT if kind is ENUM else kind for kind in (left, right))
    ranks = [(8 * kind.size + (not kind.signed), kind.order) for kind in (left, right)]
    return right if ranks[0] < ranks[1] else left


def divided(a, b, signed):
    """The quotient and the remainder, truncated."""
    if not signed:
        return divmod(a.value, b.value)
    quotient = abs(a.as_signed()) // abs(b.as_signed())
    quotient = -quotient if (a.as_signed() < 0) != (b.as_signed() < 0) else quotient
    return quotient, a.as_signed() - quotient * b.as_signed()


PLAIN = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
TRUTH = {
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
    "^^": lambda a, b: bool(a) != bool(b),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
ORDER = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def binary(operator, a, b):
    both = a.constant and b.constant
    kind = promote(a.kind, b.kind)
    if operator in PLAIN:
        return Node(PLAIN[operator](a.value, b.value) & MASK, kind, both)
    if operator in TRUTH:
        return Node(int(TRUTH[operator](a.value, b.value)), INT, both)
    if operator in ORDER:
        values = (a.as_signed(), b.as_signed()) if kind.signed else (a.value, b.value)
        return Node(int(ORDER[operator](*values)), INT, both)
    if operator in {"/", "%"}:
        return Node(divided(a, b, kind.signed)[operator == "%"] & MASK, kind, both)
    count = b.value & 63
    if operator == "<<":
        return Node(a.value << count & MASK, a.kind, both)
    shifted = a.as_signed() if a.kind.signed and not both else a.value  # the parser shifts without a sign
    return Node(shifted >> count & MASK, a.kind, both)


def unary(operator, a):
    if operator == "!":
        return Node(int(not a.value), a.kind if a.constant else INT, a.constant)
    if operator == "~":
        return Node(~a.value & MASK, a.kind, a.constant)
    if operator == "-":
        narrow = a.constant and not a.kind.signed
        return Node(-a.value & ((1 << 8 * a.kind.size) - 1 if narrow else MASK), a.kind, a.constant)
    return a


def recorded(node):
    """What printf("%d") shows: the value at the width and the sign of its type."""
    value = node.value & ((1 << 8 * node.kind.size) - 1)
    return value - (1 << 8 * node.kind.size) if node.kind.signed and value >> 8 * node.kind.size - 1 else value


def shown(node):
    """What a statement of `program` prints: size, value, and the value as an int64_t stores it."""
    stored = cast(node, Kind("long", 8, signed=True)) if node.constant else node
    return f"{node.kind.size} {recorded(node)} {stored.as_signed()}"


OPERATORS = [*PLAIN, *TRUTH, *ORDER, "/", "%", "<<", ">>"]
VALUES = [0, 1, -1, 2, -2, 7, -8, 100, 127, -128, 128, 255, 256, -32768, 65535, 1 << 31, -(1 << 31), (1 << 32) + 5]


def literal(value):
    """A D literal of type long, or of int where it fits."""
    return f"-{-value}" if value < 0 else str(value)


def constant(value, kind):
    """The node of `(kind)literal`."""
    whole = Kind("long", 8, signed=True) if abs(value) > 0x7FFF_FFFF else INT
    return cast(Node(value & MASK, whole, constant=True), kind)


def cases(left, right, draw):
    """Pairs of texts and nodes: each operator on constants and variables of two types."""
    for operator in OPERATORS:
        for forms in ("cc", "cv", "vc", "vv"):
            texts, nodes = [], []
            for name, form, kind in zip("lr", forms, (left, right), strict=True):
                value = draw.choice(VALUES)
                if name == "r" and operator in {"/", "%"}:
                    value = draw.choice([1, -1, 3, -7, 100])
                if name == "r" and operator in {"<<", ">>"}:
                    value = draw.randrange(64)
                if form == "c":
                    texts.append(f"(({kind.name}){literal(value)})")
                    nodes.append(constant(value, kind))
                else:
                    texts.append(f"({name} = zero + {literal(value)}, {name})")
                    nodes.append(Node(value & MASK, kind, constant=False))
            if nodes[0].constant and nodes[1].constant and operator in {"/", "%"} and not nodes[1].value:
                continue
            yield f"{texts[0]} {operator} {texts[1]}", binary(operator, *nodes)
    for operator in ("-", "+", "~", "!"):
        value = draw.choice(VALUES)
        yield f"{operator}(({left.name}){literal(value)})", unary(operator, constant(value, left))
        yield f"{operator}(l = zero + {literal(value)}, l)", unary(operator, Node(value & MASK, left, constant=False))
    value = draw.choice(VALUES)
    yield f"({right.name})(({left.name}){literal(value)})", cast(constant(value, left), right)
    yield f"({right.name})(l = zero + {literal(value)}, l)", cast(Node(value & MASK, left, constant=False), right)


@pytest.mark.parametrize("left", KINDS, ids=lambda kind: kind.name)
def test_an_operator_gives_what_libdtrace_computes(left, tmp_path):
    draw = random.Random(left.name)  # noqa: S311  the same cases in every run
    for right in some(KINDS):
        tried = list(cases(left, right, draw))
        statements = "".join(
            f'printf("%d %d ", sizeof ({text}), {text}); s = {text}; printf("%d\\n", s);\n' for text, _node in tried
        )
        path = tmp_path / "operators.d"
        path.write_text(
            f"enum e {{ E }}; {left.name} l; {right.name} r; int64_t s, zero;\nBEGIN {{\n{statements}exit(0); }}\n"
        )
        output, error, status = run_scene(["-q", "-x", "nolibs", "-s", str(path)])
        assert (error, status) == ("", 0)
        wrong = [
            (text, line, shown(node))
            for (text, node), line in zip(tried, output.splitlines(), strict=False)
            if line != shown(node)
        ]
        assert not wrong, wrong[:10]
        assert len(output.splitlines()) == len(tried) + 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_constant_is_cut_to_the_type_of_what_it_is_assigned_to(kind, tmp_path):
    """dt_assign_common(): into every scope, an element, a member, and by every operator that assigns."""
    targets = ["g", "self->t", "this->c", "a[1]", "p->m"]
    lines, wanted = [], []
    for value in some(VALUES):
        cut = constant(value, kind)
        for target in targets:
            lines.append(f'{target} = {literal(value)}; s = {target}; printf("%d\\n", s);')
            loaded = cut
            if target == "p->m":  # memory has only the bits of the type
                low = cut.value & ((1 << 8 * kind.size) - 1)
                sign = kind.signed and low >> 8 * kind.size - 1
                loaded = Node(low | (MASK << 8 * kind.size & MASK if sign else 0), kind, constant=False)
            wanted.append(str(loaded.as_signed()))
        lines.append(f'g = zero; g += {literal(value)}; s = g; printf("%d\\n", s);')
        wanted.append(str(cut.as_signed()))
    name = kind.name
    path = tmp_path / "assignments.d"
    path.write_text(
        f"enum e {{ E }}; {name} g; self {name} t; this {name} c; {name} a[int]; struct m {{ {name} m; }}; struct m *p;"
        f"int64_t s; int64_t zero;\nBEGIN {{ p = alloca(8);\n" + "\n".join(lines) + "\nexit(0); }\n"
    )
    output, error, status = run_scene(["-q", "-x", "nolibs", "-s", str(path)])
    assert (error, status) == ("", 0)
    assert output.splitlines() == [*wanted, ""]
