"""Operators: the types of their operands and results, and the folding of constants.

The folded result of constants is not always what the same operation gives at run time: libdtrace
computes it in 64 bits and cuts nothing, shifts it without a sign, and keeps the type of `!`.

Source: FreeBSD libdtrace dt_parser.c (dt_node_op1(), dt_node_op2() and the "cook" functions),
dt_cg.c (dt_cg_arithmetic_op()).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.support.words import WORD_MASK
from trapline.d.check import typed
from trapline.d.check.conversions import is_null, is_zero
from trapline.d.check.typed import Connective
from trapline.d.errors import CompileError
from trapline.d.types.data_models import INT64, Model
from trapline.d.types.rules import (
    element_of,
    is_arithmetic,
    is_dynamic,
    is_integer,
    is_scalar,
    is_signed,
    is_string,
    is_text,
    is_userland,
    is_void,
    pointers_compatible,
    promote,
    same,
    size_of,
)
from trapline.d.types.types import CHAR, STRING, Function, Type, resolve, type_name
from trapline.framework.base.arithmetic import divide, remainder
from trapline.framework.base.dif import Op

_ARITHMETIC: Final = {"+": Op.ADD, "-": Op.SUB, "*": Op.MUL}
# Operator -> the operation for signed and for unsigned operands.
_DIVISION: Final = {"/": (Op.SDIV, Op.UDIV), "%": (Op.SREM, Op.UREM)}
_BITS: Final = {"&": Op.AND, "|": Op.OR, "^": Op.XOR}
# Operator -> the branch for signed and for unsigned operands.
COMPARISONS: Final = {
    "==": (Op.BE, Op.BE),
    "!=": (Op.BNE, Op.BNE),
    "<": (Op.BL, Op.BLU),
    "<=": (Op.BLE, Op.BLEU),
    ">": (Op.BG, Op.BGU),
    ">=": (Op.BGE, Op.BGEU),
}
_CONNECTIVES: Final = {connective.value: connective for connective in Connective}
_INTEGERS_ONLY: Final = frozenset({"&", "|", "^", "<<", ">>", "%"})
_FOLDED: Final[dict[Op, Callable[[int, int], int]]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUB: lambda a, b: a - b,
    Op.MUL: lambda a, b: a * b,
    Op.SDIV: divide,
    Op.UDIV: lambda a, b: (a & WORD_MASK) // (b & WORD_MASK),
    Op.SREM: remainder,
    Op.UREM: lambda a, b: (a & WORD_MASK) % (b & WORD_MASK),
    Op.AND: lambda a, b: a & b,
    Op.OR: lambda a, b: a | b,
    Op.XOR: lambda a, b: a ^ b,
    Op.SLL: lambda a, b: a << (b & 63),
    Op.SRL: lambda a, b: (a & WORD_MASK) >> (b & 63),
    # Constants are shifted without their sign, whatever their type is.
    Op.SRA: lambda a, b: (a & WORD_MASK) >> (b & 63),
}


def operate(operator: str, left: typed.Node, right: typed.Node, model: Model, line: int) -> typed.Node:
    """Check and make an arithmetic, bit or logical operation.

    Raises `CompileError` D_OP_*, D_DIV_ZERO.
    """
    if operator in _CONNECTIVES:
        for operand in (left, right):
            if not is_scalar(operand.type):
                raise CompileError(
                    "D_OP_SCALAR", f"operator {operator} needs scalars, not {type_name(operand.type)}", line
                )
        return logical(_CONNECTIVES[operator], left, right)
    if operator in {"+", "-"}:
        return add(operator, left, right, model, line)
    integers = operator in _INTEGERS_ONLY
    for operand in (left, right):
        if not (is_integer(operand.type) if integers else is_arithmetic(operand.type)):
            tag, what = ("D_OP_INT", "integers") if integers else ("D_OP_ARITH", "arithmetic operands")
            raise CompileError(tag, f"operator {operator} needs {what}, not {type_name(operand.type)}", line)
    type_ = promote(left.type, right.type)
    if operator in _DIVISION:
        if isinstance(right, typed.Constant) and right.value == 0:
            raise CompileError("D_DIV_ZERO", f"operator {operator} with a constant zero on its right", line)
        return fold(_DIVISION[operator][not is_signed(type_)], left, right, type_)
    if operator == "<<":
        return fold(Op.SLL, left, right, left.type)
    if operator == ">>":
        return fold(Op.SRA if is_signed(left.type) else Op.SRL, left, right, left.type)
    return fold((_ARITHMETIC | _BITS)[operator], left, right, type_)


def logical(connective: Connective, left: typed.Node, right: typed.Node) -> typed.Node:
    """Make a logical operation."""
    if isinstance(left, typed.Constant) and isinstance(right, typed.Constant):
        a, b = bool(left.value), bool(right.value)
        value = {Connective.AND: a and b, Connective.OR: a or b, Connective.XOR: a != b}[connective]
        return typed.Constant(int(value))
    return typed.Logical(connective, left, right)


def scale(target: Type, line: int) -> int:
    """Return the size of one step of a pointer to `target`.  Raises `CompileError` D_OP_VFPTR."""
    if is_void(target) or isinstance(resolve(target), Function):
        raise CompileError("D_OP_VFPTR", f"arithmetic on a pointer to {type_name(target)}: cast it first", line)
    return size_of(target) or 1


def add(operator: str, left: typed.Node, right: typed.Node, model: Model, line: int) -> typed.Node:
    """Make + or -, on numbers and on pointers.  Raises `CompileError` D_OP_INCOMPAT."""
    op = _ARITHMETIC[operator]
    if is_arithmetic(left.type) and is_arithmetic(right.type):
        return fold(op, left, right, promote(left.type, right.type))
    if operator == "+" and is_integer(left.type) and (element_of(right.type) is not None or is_string(right.type)):
        left, right = right, left
    inner = CHAR if is_string(left.type) else element_of(left.type)
    if inner is not None and (is_void(inner) or isinstance(resolve(inner), Function)):
        inner = None  # its target has no size
    if inner is not None and is_integer(right.type):
        size = typed.Constant(scale(inner, line), INT64)
        offset = right if size.value == 1 else fold(Op.MUL, right, size, INT64)
        type_ = STRING if is_string(left.type) else model.pointer_to(inner, userland=is_userland(left.type))
        return typed.Binary(op, left, offset, type_)
    if inner is not None and operator == "-" and pointers_compatible(left.type, right.type):
        size = typed.Constant(scale(inner, line), INT64)
        counted = model.typedefs["ptrdiff_t"]
        difference = typed.Binary(Op.SUB, left, right, counted)
        return difference if size.value == 1 else typed.Binary(Op.UDIV, difference, size, counted)
    raise CompileError(
        "D_OP_INCOMPAT",
        f"operator {operator} cannot take {type_name(left.type)} and {type_name(right.type)}",
        line,
    )


def compare(operator: str, left: typed.Node, right: typed.Node, line: int) -> typed.Node:
    """Make a comparison of numbers, of texts or of pointers.

    Raises `CompileError` D_OP_INCOMPAT.
    """
    branches = COMPARISONS[operator]
    if is_string(left.type) or is_string(right.type):
        # NULL compares like the empty string: a subroutine that has found nothing returns it.
        if all(is_text(side.type) or is_zero(side) for side in (left, right)):
            return typed.Compare(Op.SCMP, branches[0], left, right)
    elif is_integer(left.type) and is_integer(right.type):
        type_ = promote(left.type, right.type)
        compared = typed.Compare(Op.CMP, branches[not is_signed(type_)], left, right)
        if isinstance(left, typed.Constant) and isinstance(right, typed.Constant):
            return typed.Constant(int(_holds(operator, left, right, signed=is_signed(type_))))
        return compared
    elif (
        pointers_compatible(left.type, right.type)
        or is_null(left, right)
        or is_null(right, left)
        or (same(left.type, right.type) and not is_dynamic(left.type))
    ):
        return typed.Compare(Op.CMP, branches[1], left, right)
    raise CompileError(
        "D_OP_INCOMPAT",
        f"operator {operator} cannot compare {type_name(left.type)} with {type_name(right.type)}",
        line,
    )


def _holds(operator: str, left: typed.Constant, right: typed.Constant, *, signed: bool) -> bool:
    a, b = (left.signed, right.signed) if signed else (left.value, right.value)
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def fold(op: Op, left: typed.Node, right: typed.Node, type_: Type) -> typed.Node:
    """Make an operation, or its result if both operands are constants."""
    if isinstance(left, typed.Constant) and isinstance(right, typed.Constant):
        return typed.Constant(_FOLDED[op](left.signed, right.signed) & WORD_MASK, type_)
    return typed.Binary(op, left, right, type_)


def resized(constant: typed.Constant, type_: Type) -> int:
    """Return a constant's value in the width of a type (dt_cast).

    A narrower value loses its sign; a wider one has it up to its width; of one width, all 64 bits
    stay.
    """
    source, target = size_of(constant.type), size_of(type_)
    if source == target:
        return constant.value
    value = constant.value & ((1 << 8 * min(source, target)) - 1)
    if target > source and is_signed(constant.type) and value >> 8 * source - 1:
        value -= 1 << 8 * source
    return value & WORD_MASK & ((1 << 8 * target) - 1)
