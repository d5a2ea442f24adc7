"""printf() and printa() formats, bound to the records that they print.

A format is parsed once for each enabling; for each record only values are read and fields filled.
%Y and %T show local time, according to TZ.  Names are not looked up: %P shows the number of a port
and %I the address, so that a trace is the same on every host.

Source: FreeBSD libdtrace dt_printf.c.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from emu.support.immutable import immutable
from emu.support.words import WORD_MASK
from trapline.consumer.aggregations.aggregate import Entry, quotient, scalar
from trapline.consumer.aggregations.distribution import DISTRIBUTIONS
from trapline.consumer.text.cformat import Field, integer_writer, write_float, write_text
from trapline.consumer.text.columns import c_string, decode, escape
from trapline.consumer.text.default_format import SIGNED, UNSIGNED
from trapline.consumer.text.symbols import Frame, Symbols, address_pair, show_frames
from trapline.framework.base.device import RecordDescription
from trapline.framework.base.program import ActionKind
from trapline.framework.device.printf import WIDEST, Conversion, Piece
from trapline.options import NANOSECONDS

# Shows a datum of a record that starts at an offset of a buffer.
Render: TypeAlias = Callable[[bytes, int], str]
Read: TypeAlias = Callable[[bytes, int], Any]
Write: TypeAlias = Callable[[Any], str]

PRINTF_LIKE: Final = frozenset({ActionKind.PRINTF, ActionKind.PRINTA, ActionKind.SYSTEM, ActionKind.FREOPEN})
USER_STACKS: Final = frozenset({ActionKind.USTACK, ActionKind.JSTACK})

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_INTEGERS: Final = "diuoxXp"
_FLOATING: Final = "eEfgG"
# The form of an aggregation's value for conversions other than those of integers (%@a, %@Y).
_VALUE_RECORD: Final = RecordDescription(ActionKind.DIFEXPR, 8, 0, 8, 0, 0, 0)


class FormatMismatchError(Exception):
    """A format does not match the records that it should print.

    The compiler and the consumer disagree.
    """


def bind_format(pieces: Sequence[Piece], records: Sequence[RecordDescription], symbols: Symbols) -> Render:
    """Bind a printf() format to its records; offsets count from the start of the data.

    Raises `FormatMismatchError` where records are missing or of the wrong size.
    """
    supply = iter(records)
    parts = [piece if isinstance(piece, str) else _bind(piece, supply, symbols) for piece in pieces]
    return _join(parts)


def _join(parts: Sequence[str | Render]) -> Render:
    if len(parts) == 1 and isinstance(parts[0], str):
        text = parts[0]
        return lambda _data, _base: text

    def render(data: bytes, base: int) -> str:
        return "".join([part if isinstance(part, str) else part(data, base) for part in parts])

    return render


class RowFormat:
    """A printa() format bound to the keys of its aggregations."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        keys: Sequence[RecordDescription],
        symbols: Symbols,
        show_distribution: Callable[[Entry], str],
    ) -> None:
        supply = iter(keys)
        self._show_distribution = show_distribution
        self._parts: list[str | Render | _Value] = [
            piece
            if isinstance(piece, str)
            else _Value(piece, _fill(piece, supply), _written(piece, symbols))
            if piece.aggregation
            else _bind(piece, supply, symbols)
            for piece in pieces
        ]

    def row(self, key: Entry, values: Sequence[Entry]) -> str:
        """Show one row; the n-th `%@` takes the n-th value, further ones repeat the last."""
        shown = 0
        text = []
        for part in self._parts:
            if isinstance(part, _Value):
                text.append(self._value(part, key, values[min(shown, len(values) - 1)]))
                shown += 1
            else:
                text.append(part if isinstance(part, str) else part(key.data, 0))
        return "".join(text)

    def _value(self, part: _Value, key: Entry, entry: Entry) -> str:
        action, letter = entry.action, part.conversion.letter
        if action in DISTRIBUTIONS:
            return self._show_distribution(entry)
        number = scalar(action, entry.words, entry.normal)
        signed = letter in "di"
        if action not in {ActionKind.AVG, ActionKind.STDDEV} and entry.normal != 1:
            number = quotient(number, entry.normal) if signed else (number & WORD_MASK) // entry.normal
        field = part.field(key.data, 0)
        if part.written is not None:
            return part.written((number & WORD_MASK).to_bytes(8, "little"), field)
        return integer_writer(letter, field)(number if signed else number & WORD_MASK)


@immutable
class _Value:
    """A `%@` conversion."""

    conversion: Conversion
    field: Callable[[bytes, int], Field]
    written: Callable[[bytes, Field], str] | None
    """Shows the value's eight bytes in a field; None: as an integer."""


def _written(conversion: Conversion, symbols: Symbols) -> Callable[[bytes, Field], str] | None:
    if conversion.letter in _INTEGERS:
        return None
    read = _reader(conversion, _VALUE_RECORD, symbols)
    writer = _writer_of(conversion, _VALUE_RECORD)
    return lambda data, field: writer(field)(read(data, 0))


def _field(conversion: Conversion) -> Field:
    return Field(conversion.flags, conversion.width, conversion.precision)


def _fill(conversion: Conversion, supply: Iterator[RecordDescription]) -> Callable[[bytes, int], Field]:
    """Return a reader of the field of a conversion: the format's, and the records of its `*`."""
    static = _field(conversion)
    width = _integer(next(supply, None), conversion) if conversion.dynamic_width else None
    precision = _integer(next(supply, None), conversion) if conversion.dynamic_precision else None

    def field(data: bytes, base: int) -> Field:
        return replace(
            static,
            width=static.width if width is None else max(-WIDEST, min(width(data, base), WIDEST)),
            precision=static.precision if precision is None else max(0, min(precision(data, base), WIDEST)),
        )

    return field if conversion.dynamic_width or conversion.dynamic_precision else lambda _data, _base: static


def _bind(conversion: Conversion, supply: Iterator[RecordDescription], symbols: Symbols) -> Render:
    """Bind a conversion to the next records."""
    field = _fill(conversion, supply)
    record = next(supply, None)
    if record is None:
        raise FormatMismatchError(f"{conversion} has no record to print")
    read = _reader(conversion, record, symbols)
    writer = _writer_of(conversion, record)
    if not conversion.dynamic_width and not conversion.dynamic_precision:
        return _render(read, writer(_field(conversion)))
    return lambda data, base: writer(field(data, base))(read(data, base))


def _render(read: Read, write: Write) -> Render:
    return lambda data, base: write(read(data, base))


def _at(read: Read, record: RecordDescription) -> Read:
    offset = record.offset
    return lambda data, base: read(data, base + offset)


def _integer(record: RecordDescription | None, conversion: Conversion) -> Read:
    """Return a reader of the int argument of `*`."""
    if record is None or record.size not in SIGNED:
        raise FormatMismatchError(f"{conversion} has no record for its '*'")
    return _at(SIGNED[record.size], record)


def _reader(conversion: Conversion, record: RecordDescription, symbols: Symbols) -> Read:
    """Return a function that reads what a conversion shows from the records of an enabling."""
    if record.action is ActionKind.MOD:
        return _at(lambda data, offset: symbols.kernel_module(UNSIGNED[8](data, offset)), record)
    if record.action is ActionKind.UMOD:
        return _at(lambda data, offset: symbols.user_module(*address_pair(data, offset)), record)
    if conversion.letter == "k":
        user = record.action in USER_STACKS
        return _at(lambda data, offset: symbols.frames(record, data, offset, user=user), record)
    if conversion.letter == "a":
        return _at(_kernel_address(record, conversion, symbols), record)
    if conversion.letter == "A":
        return _at(_user_address(record, conversion, symbols), record)
    if conversion.letter in _FLOATING and record.size == _LONG_DOUBLE:
        return _at(_x87 if symbols.x87 else _binary128, record)
    table = _READERS[conversion.name if conversion.name in _READERS else conversion.letter]
    size = record.size
    read = table(size) if callable(table) else table.get(size)
    if read is None:
        raise FormatMismatchError(f"{conversion} cannot print a record of {size} bytes")
    return _at(read, record)


def _kernel_address(record: RecordDescription, conversion: Conversion, symbols: Symbols) -> Read:
    read = UNSIGNED.get(record.size)
    if read is None:
        raise FormatMismatchError(f"{conversion} cannot print a record of {record.size} bytes")
    return lambda data, offset: symbols.kernel(read(data, offset))


def _user_address(record: RecordDescription, conversion: Conversion, symbols: Symbols) -> Read:
    if record.size == 16:
        return lambda data, offset: symbols.user(*address_pair(data, offset))
    read = UNSIGNED.get(record.size)
    if read is None:
        raise FormatMismatchError(f"{conversion} cannot print a record of {record.size} bytes")
    return lambda data, offset: symbols.user(0, read(data, offset))


def _string(size: int) -> Read:
    return lambda data, offset: decode(c_string(data[offset : offset + size]))


def _escaped(size: int) -> Read:
    """Read a text with escapes.

    The NUL that ends it is part of it (strchr2esc stops after it, not before).
    """

    def read(data: bytes, offset: int) -> str:
        text = data[offset : offset + size]
        return escape(text[: text.find(0) + 1] if 0 in text else text)

    return read


def _wide_string(size: int) -> Read:
    def read(data: bytes, offset: int) -> str:
        codes = struct.unpack_from(f"<{size // 4}I", data, offset)
        end = codes.index(0) if 0 in codes else len(codes)
        return "".join(chr(code) if code < 0x110000 else "?" for code in codes[:end])

    return read


def _seconds(data: bytes, offset: int) -> time.struct_time:
    return time.localtime(UNSIGNED[8](data, offset) // NANOSECONDS)


def _calendar(data: bytes, offset: int) -> str:
    """Read a walltimestamp as `1973 Dec  3 17:20:00`."""
    t = _seconds(data, offset)
    return f"{t.tm_year:4d} {_MONTHS[t.tm_mon - 1]} {t.tm_mday:2d} {t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"


def _rfc822(data: bytes, offset: int) -> str:
    """Return a walltimestamp as RFC 822 does: `%a, %d %b %G %T %Z`, the year of the ISO week."""
    t = _seconds(data, offset)
    clock = f"{t.tm_hour:02d}:{t.tm_min:02d}:{t.tm_sec:02d}"
    return f"{_DAYS[t.tm_wday]}, {t.tm_mday:02d} {_MONTHS[t.tm_mon - 1]} {time.strftime('%G', t)} {clock} {t.tm_zone}"


def _float(code: str) -> Read:
    unpack = struct.Struct("<" + code).unpack_from
    return lambda data, offset: unpack(data, offset)[0]


def _x87(data: bytes, offset: int) -> float:
    """Read an x86 long double: 80 bits, the leading bit of the mantissa explicit."""
    raw = int.from_bytes(data[offset : offset + 10], "little")
    return _compose(raw >> 79, raw >> 64 & 0x7FFF, raw & WORD_MASK, 63)


def _binary128(data: bytes, offset: int) -> float:
    """Read a long double of the other ISAs: IEEE 754 binary128."""
    raw = int.from_bytes(data[offset : offset + 16], "little")
    exponent, fraction = raw >> 112 & 0x7FFF, raw & (1 << 112) - 1
    return _compose(raw >> 127, exponent, fraction | (exponent != 0) << 112, 112)


def _compose(sign: int, exponent: int, mantissa: int, point: int) -> float:
    if exponent == 0x7FFF:
        magnitude = float("nan") if mantissa & (1 << point) - 1 else float("inf")
    else:
        power = max(exponent, 1) - 0x3FFF - point
        try:
            magnitude = float(mantissa << power) if power >= 0 else mantissa / (1 << -power)
        except OverflowError:
            magnitude = float("inf")
    return -magnitude if sign else magnitude


def _character(size: int) -> Read | None:
    read = UNSIGNED.get(size)
    return read and (lambda data, offset: decode(bytes((read(data, offset) & 0xFF,))))


def _escaped_character(size: int) -> Read | None:
    read = UNSIGNED.get(size)
    return read and (lambda data, offset: escape(bytes((read(data, offset) & 0xFF,))))


def _wide_character(size: int) -> Read | None:
    read = UNSIGNED.get(size)
    return read and (lambda data, offset: chr(code) if (code := read(data, offset)) < 0x110000 else "?")


_FLOATS: Final[dict[int, Read]] = {4: _float("f"), 8: _float("d")}
_LONG_DOUBLE: Final = 16

# For each conversion: readers by record size, or a function that makes the reader for a size.
_READERS: Final[dict[str, Any]] = {
    **dict.fromkeys("di", SIGNED),
    **dict.fromkeys("uoxXp", UNSIGNED),
    **dict.fromkeys(_FLOATING, _FLOATS),
    **dict.fromkeys("sI", _string),
    **dict.fromkeys(("ls", "ws"), _wide_string),
    **dict.fromkeys(("lc", "wc"), _wide_character),
    "S": _escaped,
    "c": _character,
    "C": _escaped_character,
    "P": {2: lambda data, offset: str(UNSIGNED[2](data, offset))},
    "Y": {8: _calendar},
    "T": {8: _rfc822},
}


def _writer_of(conversion: Conversion, record: RecordDescription) -> Callable[[Field], Write]:
    """Return a function that makes, for a field, the function that shows a value."""
    letter = conversion.letter
    if letter == "k":
        return _stack_writer
    if record.action in {ActionKind.MOD, ActionKind.UMOD} or letter not in _INTEGERS + _FLOATING:
        return _text_writer
    if letter in _INTEGERS:
        return lambda field: integer_writer(letter, field)
    return lambda field: lambda value: write_float(value, letter, field)


def _text_writer(field: Field) -> Write:
    return str if field == Field() else lambda text: write_text(text, field)


def _stack_writer(field: Field) -> Write:
    """Make a writer of stacks: with `-` the width is the indentation, else that of each frame."""
    indent, width = (abs(field.width), 0) if field.left else (0, field.width)

    def write(frames: tuple[Frame, ...]) -> str:
        return show_frames(frames, indent, width)

    return write
