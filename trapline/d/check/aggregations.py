"""Assignments of aggregations: the function, the keys, and the parameters of lquantize().

The parameters of lquantize() and llquantize() are encoded in one word.

Source: FreeBSD libdtrace dt_cc.c (dt_compile_agg()), dt_ident.c (dt_idcook_sign()) and dtrace.h
(DTRACE_LQUANTIZE_*, DTRACE_LLQUANTIZE_*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from emu.support.did_you_mean import counted
from trapline.d.check import typed
from trapline.d.check.conversions import incompatible
from trapline.d.errors import CompileError
from trapline.d.parse import ast
from trapline.d.types.rules import diftype, is_integer, is_text
from trapline.d.types.types import STACK, SYMBOL, USER_SYMBOL, Type
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from trapline.d.check.expressions import Expressions
    from trapline.d.check.scopes import Aggregation, Globals

# The number of constant parameters that may follow the value.
QUANTIZE_PARAMETERS: Final = {ActionKind.LQUANTIZE: 3, ActionKind.LLQUANTIZE: 4}
_U16: Final = 0xFFFF
_U32: Final = 0xFFFF_FFFF
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


def check_aggregation(node: ast.Assign, expressions: Expressions, names: Globals) -> typed.Node:
    """Check the types of an assignment, which determines an aggregation's function and keys.

    Raises `CompileError` D_AGG_FUNC, D_AGG_REDEF, D_KEY_TYPE, D_PROTO_LEN, D_PROTO_ARG.
    """
    name, keys = named_aggregation(node.target)
    types = tuple(key.type for key in expressions.elements.keys_of(name, keys))
    found = names.aggregation(name)
    if found.function is not None:
        _check_keys(found, types, node.line)
    value = expressions.check(node.value)
    function = names.words.aggregating.get(value.name) if isinstance(value, typed.Action) else None
    if node.operator != "=" or function is None:
        raise CompileError(
            "D_AGG_FUNC",
            f"@{name} must be assigned the result of an aggregating function, such as count( )",
            node.line,
        )
    if found.function is None:
        found.function, found.keys = function.kind, types
    elif found.function is not function.kind:
        was, now = found.function.name.lower(), function.name
        raise CompileError("D_AGG_REDEF", f"aggregation redefined: @{name} is {was}( ), not {now}( )", node.line)
    return typed.Aggregate(name)


def _check_keys(found: Aggregation, types: tuple[Type, ...], line: int) -> None:
    """Compare the keys of an aggregation with those of its first assignment."""
    if len(types) != len(found.keys):
        has = counted(len(found.keys), "key")
        raise CompileError("D_PROTO_LEN", f"@{found.name}[ ] has {has}, not {len(types)}", line)
    for number, (type_, known) in enumerate(zip(types, found.keys, strict=True), start=1):
        if not alike(type_, known):
            raise incompatible(f"@{found.name}[ ] key #{number}", known, type_, line)


def is_aggregation(node: ast.Statement) -> TypeGuard[ast.Assign]:
    """Return whether a statement assigns an aggregation."""
    match node:
        case ast.Assign(target=ast.Aggregation() | ast.Index(base=ast.Aggregation())):
            return True
    return False


def named_aggregation(target: ast.Expression) -> tuple[str, tuple[ast.Expression, ...]]:
    """Return the name and the keys of `@name[keys]`."""
    match target:
        case ast.Index(base=ast.Aggregation(name=name), keys=keys):
            return name, keys
        case ast.Aggregation(name=name):
            return name, ()
    raise AssertionError(target)


def alike(left: Type, right: Type) -> bool:
    """Return whether two keys are compatible: integers of any width, texts, or one kind of value."""
    if is_integer(left) and is_integer(right):
        return True
    if is_text(left) and is_text(right):
        return True
    return diftype(left) == diftype(right) and (left in {STACK, SYMBOL, USER_SYMBOL}) == (
        right in {STACK, SYMBOL, USER_SYMBOL}
    )


# -- parameters

# Returns a parameter's value, None if it is not an integer constant.
Constant = Callable[[], "int | None"]


def encode_quantize(kind: ActionKind, parameters: Sequence[Constant], known: Aggregation, line: int) -> int:
    """Check the parameters, also against the first use of the aggregation; encode them."""
    if kind is ActionKind.LQUANTIZE:
        return _linear(parameters, known, line)
    if kind is ActionKind.LLQUANTIZE:
        return _log_linear(parameters, known, line)
    return 0


class _Linear(NamedTuple):
    """The encoded word of lquantize()."""

    word: int

    @property
    def base(self) -> int:
        """The lower bound, as 32 bits."""
        return self.word & _U32

    @property
    def span(self) -> int:
        """The difference between the upper and the lower bound."""
        return (self.word >> 48) * (self.word >> 32 & _U16)


def _linear(parameters: Sequence[Constant], known: Aggregation, line: int) -> int:
    base = _bound(parameters[0], "BASE", "lower", line)
    limit = _bound(parameters[1], "LIM", "upper", line)
    if limit < base:
        raise CompileError(
            "D_LQUANT_MISMATCH", f"lquantize( ): the bounds {base} and {limit} are in the wrong order", line
        )
    step = parameters[2]() if len(parameters) > 2 else 1
    if step is None or step <= 0:
        raise CompileError("D_LQUANT_STEPTYPE", "lquantize( ): the step is not a positive integer constant", line)
    if step > _U16:
        raise CompileError("D_LQUANT_STEPVAL", f"lquantize( ): a step is at most {_U16}, not {step}", line)
    levels = (limit - base) // step
    if levels == 0:
        raise CompileError("D_LQUANT_STEPLARGE", f"lquantize( ): the step {step} does not fit between the bounds", line)
    if levels > _U16:
        raise CompileError("D_LQUANT_STEPSMALL", f"lquantize( ): {levels} steps, and at most {_U16} are possible", line)
    encoded = step << 48 | levels << 32 | base & _U32
    if known.argument and known.argument != encoded:
        first = _Linear(known.argument)
        tag = "BASE" if first.base != base & _U32 else "LIM" if first.span != levels * step else "STEP"
        raise CompileError(
            f"D_LQUANT_MATCH{tag}", f"@{known.name} has other parameters of lquantize( ) elsewhere", line
        )
    return encoded


def _bound(parameter: Constant, tag: str, which: str, line: int) -> int:
    value = parameter()
    if value is None:
        raise CompileError(f"D_LQUANT_{tag}TYPE", f"lquantize( ): the {which} bound is not an integer constant", line)
    if not _INT_MIN <= value <= _INT_MAX:
        raise CompileError(
            f"D_LQUANT_{tag}VAL", f"lquantize( ): the {which} bound {value} does not fit in 32 bits", line
        )
    return value


_NAMES: Final = ("FACTOR", "LOW", "HIGH", "NSTEP")
_WORDS: Final = ("factor", "low magnitude", "high magnitude", "number of steps")


def _log_linear(parameters: Sequence[Constant], known: Aggregation, line: int) -> int:
    values = []
    for name, word, parameter in zip(_NAMES, _WORDS, parameters, strict=True):
        value = parameter()
        if value is None:
            raise CompileError(f"D_LLQUANT_{name}TYPE", f"llquantize( ): the {word} is not an integer constant", line)
        if not 0 <= value <= _U16:
            raise CompileError(f"D_LLQUANT_{name}VAL", f"llquantize( ): the {word} {value} is not in 0..{_U16}", line)
        values.append(value)
    factor, low, high, steps = values
    if factor < 2:
        raise CompileError("D_LLQUANT_FACTORSMALL", "llquantize( ): the factor is at least 2", line)
    if low >= high:
        raise CompileError("D_LLQUANT_MAGRANGE", "llquantize( ): the low magnitude is not below the high one", line)
    if steps < factor:
        raise CompileError("D_LLQUANT_FACTORNSTEPS", "llquantize( ): there are fewer steps than the factor", line)
    power = factor
    while power < steps:
        power *= factor
    if power % steps or steps % factor:
        raise CompileError("D_LLQUANT_FACTOREVEN", "llquantize( ): the steps do not divide a power of the factor", line)
    if factor ** (high + 1) >= 1 << 64:
        raise CompileError("D_LLQUANT_MAGTOOBIG", f"llquantize( ): {factor} to the power {high} overflows", line)
    encoded = factor << 48 | low << 32 | high << 16 | steps
    if known.argument and known.argument != encoded:
        shifts = (48, 32, 16, 0)
        name = next(n for n, s, v in zip(_NAMES, shifts, values, strict=True) if known.argument >> s & _U16 != v)
        raise CompileError(
            f"D_LLQUANT_{name}MATCH", f"@{known.name} has other parameters of llquantize( ) elsewhere", line
        )
    return encoded
