"""printf formats: parsing of the text, and formatting of values.

The compiler checks formats and writes argument types into them; the consumer prints by them.  Both
see a format as the pieces `parse_format` gives: literal text and conversions.  Pure data, nothing
is printed here.

Source of the conversions and flags: FreeBSD libdtrace dt_printf.c and the printf chapter of the D
language.
"""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import TYPE_CHECKING, Final, TypeAlias

from emu.support.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Width of `%?` unless said otherwise: the digits of a pointer in the LP64 data model.
POINTER_WIDTH: Final = 16


class FormatError(ValueError):
    """A format that cannot be parsed; the message names the conversion by its number."""


class Flag(IntFlag):
    """Flags between the `%` and the conversion."""

    NONE = 0
    ALTERNATE = 1
    ZERO = 2
    LEFT = 4
    PLUS = 8
    SPACE = 16
    GROUP = 32
    """Thousands grouping; dtrace(1) runs in the C locale, where it changes nothing."""


class Accepts(Enum):
    """The arguments that a conversion accepts; the compiler checks their types."""

    NOTHING = "void"
    INTEGER = "char, short, int, long, or long long"
    CHARACTER = "char, short, or int"
    FLOAT = "float, double, or long double"
    POINTER = "pointer or integer"
    KERNEL_ADDRESS = "pointer, integer, or sym()"
    USER_ADDRESS = "pointer or integer (with -p or -c), or usym()"
    STRING = "char [] or string (or use stringof)"
    WIDE_STRING = "wchar_t []"
    STACK = "stack() or ustack()"
    TIME = "int64_t"
    PORT = "uint16_t"
    WIDE_CHARACTER = "wint_t"
    SHORT = "short"
    UNSIGNED_SHORT = "unsigned short"
    ANY_SHORT = "short or unsigned short"
    LONG = "long"
    UNSIGNED_LONG = "unsigned long"
    ANY_LONG = "long or unsigned long"
    LONG_LONG = "long long"
    UNSIGNED_LONG_LONG = "unsigned long long"
    ANY_LONG_LONG = "long long, unsigned long long, or a 64-bit typedef"
    LONG_DOUBLE = "long double"


# Every conversion name, size prefix included, and its arguments (`%%` has none and is literal text).
CONVERSIONS: Final[dict[str, Accepts]] = {
    "a": Accepts.KERNEL_ADDRESS,
    "A": Accepts.USER_ADDRESS,
    "c": Accepts.CHARACTER,
    "C": Accepts.CHARACTER,
    "d": Accepts.INTEGER,
    "i": Accepts.INTEGER,
    "u": Accepts.INTEGER,
    "o": Accepts.INTEGER,
    "x": Accepts.INTEGER,
    "X": Accepts.INTEGER,
    "p": Accepts.POINTER,
    "s": Accepts.STRING,
    "S": Accepts.STRING,
    "I": Accepts.STRING,
    "k": Accepts.STACK,
    "P": Accepts.PORT,
    "T": Accepts.TIME,
    "Y": Accepts.TIME,
    "lc": Accepts.WIDE_CHARACTER,
    "wc": Accepts.WIDE_CHARACTER,
    "ls": Accepts.WIDE_STRING,
    "ws": Accepts.WIDE_STRING,
    **dict.fromkeys("eEfgG", Accepts.FLOAT),
    **dict.fromkeys(("Le", "LE", "Lf", "Lg", "LG"), Accepts.LONG_DOUBLE),
    **dict.fromkeys(("hd", "hi"), Accepts.SHORT),
    **dict.fromkeys(("ho", "hu"), Accepts.UNSIGNED_SHORT),
    **dict.fromkeys(("hx", "hX"), Accepts.ANY_SHORT),
    **dict.fromkeys(("ld", "li"), Accepts.LONG),
    **dict.fromkeys(("lo", "lu"), Accepts.UNSIGNED_LONG),
    **dict.fromkeys(("lx", "lX"), Accepts.ANY_LONG),
    **dict.fromkeys(("lld", "lli"), Accepts.LONG_LONG),
    **dict.fromkeys(("llo", "llu"), Accepts.UNSIGNED_LONG_LONG),
    **dict.fromkeys(("llx", "llX"), Accepts.ANY_LONG_LONG),
}


@immutable
class Conversion:
    """One conversion of a format."""

    name: str
    """Its name with the size prefix: a key of `CONVERSIONS`."""
    number: int = 1
    """Its place among the conversions of the format, from 1; a `%%` before it counts (messages name
    it by this)."""
    flags: Flag = Flag.NONE
    width: int = 0
    precision: int = 0
    """Digits or characters; 0 means none, as in libdtrace."""
    dynamic_width: bool = False
    """`*`: the width is the next argument, an int; a negative one aligns left."""
    dynamic_precision: bool = False
    """`.*`: the precision is an argument, after that of a dynamic width."""
    aggregation: bool = False
    """`@`: takes the value of an aggregation, for printa() only."""

    @property
    def letter(self) -> str:
        """The conversion without its size prefix."""
        return self.name[-1]

    @property
    def accepts(self) -> Accepts:
        """The kind of its argument."""
        return CONVERSIONS[self.name]

    @property
    def arguments(self) -> int:
        """The number of its arguments: its own (unless `@`), a dynamic width and precision."""
        return (not self.aggregation) + self.dynamic_width + self.dynamic_precision

    def __str__(self) -> str:
        marks = "".join(mark for mark, flag in _FLAGS.items() if flag in self.flags)
        width = "*" if self.dynamic_width else str(self.width or "")
        precision = ".*" if self.dynamic_precision else f".{self.precision}" if self.precision else ""
        return f"%{'@' if self.aggregation else ''}{marks}{width}{precision}{self.name}"


# A piece of a format: literal text, or a conversion.
Piece: TypeAlias = str | Conversion

_FLAGS: Final = {
    "#": Flag.ALTERNATE,
    "0": Flag.ZERO,
    "-": Flag.LEFT,
    "+": Flag.PLUS,
    " ": Flag.SPACE,
    "'": Flag.GROUP,
}
_SIZES: Final = "hlLw"


def parse_format(text: str, pointer_width: int = POINTER_WIDTH) -> tuple[Piece, ...]:
    """Parse a format into literal texts (`%%` is the literal `%`) and conversions.

    Raises `FormatError` for an unknown conversion, `%n$`, a second precision, `*` twice, flags on
    `%%`, or a format that ends within a conversion.
    """
    pieces: list[Piece] = []
    literal = ""
    position, number = 0, 0
    while (percent := text.find("%", position)) >= 0:
        literal += text[position:percent]
        number += 1
        if text.startswith("%%", percent):
            literal += "%"
            position = percent + 2
            continue
        conversion, position = _parse_conversion(text, percent + 1, number, pointer_width)
        if literal:
            pieces.append(literal)
            literal = ""
        pieces.append(conversion)
    literal += text[position:]
    if literal:
        pieces.append(literal)
    return tuple(pieces)


def conversions(pieces: Iterable[Piece]) -> Iterator[Conversion]:
    """Yield the conversions among the pieces of a format."""
    return (piece for piece in pieces if isinstance(piece, Conversion))


def write_format(pieces: Iterable[Piece]) -> str:
    """Return the text of a format's pieces."""
    return "".join(piece.replace("%", "%%") if isinstance(piece, str) else str(piece) for piece in pieces)


# The largest number of digits of a width or precision: more than any line of output needs.
_DIGITS_MAX: Final = 6
# The largest width or precision, which also limits that of a `*`.
WIDEST: Final = 10**_DIGITS_MAX - 1


def _parse_conversion(text: str, position: int, number: int, pointer_width: int) -> tuple[Conversion, int]:
    """Read a conversion whose `%` lies before `position`; return it and the position after it."""
    flags = Flag.NONE
    width = precision = 0
    dynamic_width = dynamic_precision = dot = digits = aggregation = False
    size = ""
    while True:
        mark = text[position : position + 1]
        position += 1
        if mark.isdecimal() and mark.isascii():
            if mark == "0" and not dot and not digits:
                flags = (flags | Flag.ZERO) & ~Flag.LEFT
                continue
            end = position
            while text[end : end + 1].isdecimal() and text[end].isascii():
                end += 1
            written = text[position - 1 : end].lstrip("0") or "0"
            if len(written) > _DIGITS_MAX:
                raise FormatError(f"format conversion #{number} has a width or precision of {len(written)} digits")
            value, position, digits = int(written), end, True
            if dot:
                precision = value
            else:
                width = value
        elif mark == "-":
            flags = (flags | Flag.LEFT) & ~Flag.ZERO
        elif mark in _FLAGS:
            flags |= _FLAGS[mark]
        elif mark == ".":
            if dot:
                raise FormatError(f"format conversion #{number} has more than one '.' specified")
            dot, digits = True, False
        elif mark == "*":
            if dynamic_precision if dot else dynamic_width:
                what = "precision" if dot else "width"
                raise FormatError(f"format conversion #{number} has more than one '*' specified for the output {what}")
            dynamic_width, dynamic_precision = dynamic_width or not dot, dynamic_precision or dot
        elif mark == "?":
            width = pointer_width
        elif mark == "@":
            aggregation = True
        elif mark and mark in _SIZES:
            size += mark
        else:
            break
    if not mark:
        raise FormatError(f"format conversion #{number} name expected before end of format string")
    if mark == "$":
        raise FormatError(f"format conversion #{number} uses unsupported positional format (%n$)")
    if mark == "%":
        raise FormatError(f"format conversion #{number} cannot be combined with other format flags: %%")
    name = size + mark
    if name not in CONVERSIONS:
        raise FormatError(f"format conversion #{number} is undefined: %{name}")
    conversion = Conversion(name, number, flags, width, precision, dynamic_width, dynamic_precision, aggregation)
    return conversion, position
