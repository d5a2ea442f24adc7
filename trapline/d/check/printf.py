"""Formats: checked against their arguments, and completed with the arguments' types.

Source: FreeBSD libdtrace dt_printf.c (dt_printf_validate).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from emu.support.did_you_mean import counted
from trapline.d.errors import CompileError
from trapline.d.types.data_models import MODELS, Model
from trapline.d.types.rules import is_address, is_integer, is_pointer, is_scalar, is_signed, is_text, size_of
from trapline.d.types.types import (
    INT,
    LONG_DOUBLE,
    LONG_LONG,
    SHORT,
    UNSIGNED_LONG_LONG,
    UNSIGNED_SHORT,
    VOID,
    Array,
    Float,
    Integer,
    Special,
    Type,
    Typedef,
    resolve,
    type_name,
)
from trapline.framework.device.printf import Accepts, Conversion, FormatError, Piece, parse_format, write_format


def _exactly(*types: Type) -> Callable[[Type], bool]:
    """Accept these types and what they are called, and no others of their size (pfcheck_type)."""
    return lambda type_: resolve(type_) in types


def _is_long_long(type_: Type) -> bool:
    """Accept what %llx shows: also an int64_t or uint64_t by name (pfcheck_xlonglong)."""
    while isinstance(type_, Typedef) and type_.name not in {"int64_t", "uint64_t"}:
        type_ = type_.target
    return isinstance(type_, Typedef) or type_ in {LONG_LONG, UNSIGNED_LONG_LONG}


def _is_text(type_: Type) -> bool:
    return is_text(type_) and not is_pointer(type_)


def _is_wide_text(type_: Type) -> bool:
    array = resolve(type_)
    return isinstance(array, Array) and isinstance(resolve(array.element), Integer) and size_of(array.element) == 4


def _is_float(type_: Type) -> bool:
    return isinstance(resolve(type_), Float)


_ACCEPTS: Final[dict[Accepts, Callable[[Type], bool]]] = {
    Accepts.NOTHING: lambda _type: False,
    Accepts.INTEGER: is_integer,
    Accepts.CHARACTER: lambda type_: is_integer(type_) and size_of(type_) <= 4,
    Accepts.FLOAT: _is_float,
    Accepts.POINTER: is_scalar,
    Accepts.KERNEL_ADDRESS: lambda type_: is_scalar(type_) or resolve(type_) is Special.SYMBOL,
    Accepts.USER_ADDRESS: lambda type_: is_scalar(type_) or resolve(type_) is Special.USER_SYMBOL,
    Accepts.STRING: _is_text,
    Accepts.WIDE_STRING: _is_wide_text,
    Accepts.STACK: lambda type_: resolve(type_) is Special.STACK,
    Accepts.TIME: lambda type_: is_integer(type_) and size_of(type_) == 8,
    Accepts.PORT: _exactly(UNSIGNED_SHORT),
    Accepts.WIDE_CHARACTER: _exactly(INT),
    Accepts.SHORT: _exactly(SHORT),
    Accepts.UNSIGNED_SHORT: _exactly(UNSIGNED_SHORT),
    Accepts.ANY_SHORT: _exactly(SHORT, UNSIGNED_SHORT),
    Accepts.LONG_LONG: _exactly(LONG_LONG),
    Accepts.UNSIGNED_LONG_LONG: _exactly(UNSIGNED_LONG_LONG),
    Accepts.ANY_LONG_LONG: _is_long_long,
    Accepts.LONG_DOUBLE: _exactly(LONG_DOUBLE),
}


# The types that conversions accept, by data model.
_BY_MODEL: Final = {
    model.model: _ACCEPTS
    | {
        Accepts.LONG: _exactly(model.long),
        Accepts.UNSIGNED_LONG: _exactly(model.unsigned_long),
        Accepts.ANY_LONG: _exactly(model.long, model.unsigned_long),
    }
    for model in MODELS.values()
}

# Conversions that show where an array is.
_ADDRESSES: Final = frozenset({Accepts.POINTER, Accepts.KERNEL_ADDRESS, Accepts.USER_ADDRESS})


class Formats:
    """Parses and checks the formats of one program."""

    def __init__(self, model: Model, *, target: bool) -> None:
        """`target`: whether there is a process of -p or -c, in which %A looks addresses up."""
        self._model = model
        self._target = target

    def _accepts(self, piece: Conversion, type_: Type) -> bool:
        if piece.accepts is Accepts.USER_ADDRESS and not self._target:
            return resolve(type_) is Special.USER_SYMBOL
        return _BY_MODEL[self._model.model][piece.accepts](type_)

    def parse(self, text: str, line: int) -> tuple[Piece, ...]:
        """Parse a format.  Raises `CompileError` D_SYNTAX."""
        try:
            return parse_format(text, 2 * self._model.pointer)
        except FormatError as error:
            raise CompileError("D_SYNTAX", str(error), line) from None

    def check(self, name: str, pieces: Sequence[Piece], types: Sequence[Type], line: int) -> tuple[str, frozenset[int]]:
        """Check a format against the types of the arguments.

        Return it with their types, and the indices of the arrays whose addresses it shows.  Raises
        `CompileError` D_PRINTF_*.
        """
        written: list[Piece] = []
        addresses: set[int] = set()
        remaining = list(enumerate(types, start=2))
        for piece in pieces:
            if isinstance(piece, str):
                written.append(piece)
                continue
            if piece.aggregation:
                raise CompileError("D_PRINTF_AGG_CONV", f"{name}( ): {piece} is for printa( ) only", line)
            for what in ("width",) * piece.dynamic_width + ("precision",) * piece.dynamic_precision:
                _take_dynamic(name, piece, what, remaining, line)
            if not remaining:
                raise CompileError(
                    "D_PRINTF_ARG_PROTO", f"{name}( ): conversion #{piece.number} ({piece}) has no argument", line
                )
            number, type_ = remaining.pop(0)
            if is_address(type_) and not is_pointer(type_) and piece.accepts in _ADDRESSES:
                type_ = self._model.pointer_to(VOID)
                addresses.add(number - 2)
            if not self._accepts(piece, type_):
                raise _unfit(f"{name}( ) argument #{number}", piece, type_, line)
            written.append(_with_type(piece, type_))
        if remaining:
            extra = len(remaining)
            raise CompileError(
                "D_PRINTF_ARG_EXTRA",
                f"{name}( ): {counted(extra, 'argument')} more than the format has conversions",
                line,
            )
        return write_format(written), frozenset(addresses)

    def check_keys(self, pieces: Sequence[Piece], value: Type, keys: Sequence[Type], line: int) -> str:
        """Check a format of printa() against the value and the keys of its aggregations.

        Raises `CompileError` D_PRINTF_*.
        """
        written: list[Piece] = []
        remaining = list(enumerate(keys, start=1))
        for piece in pieces:
            if isinstance(piece, str) or piece.aggregation:
                if not isinstance(piece, str) and not self._accepts(piece, value):
                    raise _unfit("printa( ) value", piece, value, line)
                written.append(piece)
                continue
            if not remaining:
                raise CompileError(
                    "D_PRINTF_ARG_PROTO", f"printa( ): conversion #{piece.number} ({piece}) has no key", line
                )
            number, type_ = remaining.pop(0)
            if not self._accepts(piece, type_):
                raise _unfit(f"printa( ) key #{number}", piece, type_, line)
            written.append(_with_type(piece, type_))
        return write_format(written)


def _unfit(what: str, piece: Conversion, type_: Type, line: int) -> CompileError:
    return CompileError(
        "D_PRINTF_ARG_TYPE",
        f"{what} is incompatible with conversion #{piece.number} prototype:\n"
        f"\tconversion: %{'@' * piece.aggregation}{piece.name}\n\t prototype: {piece.accepts.value}\n"
        f"\t  argument: {type_name(type_)}",
        line,
    )


def _take_dynamic(name: str, piece: Conversion, what: str, remaining: list[tuple[int, Type]], line: int) -> None:
    if not remaining:
        raise CompileError(
            "D_PRINTF_DYN_PROTO", f"{name}( ): conversion #{piece.number} has no argument for its {what} *", line
        )
    number, type_ = remaining.pop(0)
    if not is_integer(type_):
        raise CompileError(
            "D_PRINTF_DYN_TYPE", f"{name}( ) argument #{number}: a {what} is an int, not {type_name(type_)}", line
        )


def _with_type(piece: Conversion, type_: Type) -> Conversion:
    """Write an argument's signedness into %d, which accepts both (pfcheck_dint)."""
    return replace(piece, name="u") if piece.name == "d" and not is_signed(type_) else piece
