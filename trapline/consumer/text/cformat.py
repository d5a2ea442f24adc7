"""C's printf for one value: an integer, a text, a floating-point number in a field.

Python's `%` agrees with C's in most of it; where it does not (`#` of octal and of zero, `+` of
unsigned, `0` beside a precision), the integer is formatted here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.support.immutable import immutable
from trapline.consumer.text.columns import clip, pad
from trapline.framework.device.printf import Flag

_BASES: Final = {"o": "o", "x": "x", "X": "X", "p": "x", "u": "d", "d": "d", "i": "d"}
_PREFIXES: Final = {"x": "0x", "X": "0X", "p": "0x"}
_SIGNED: Final = "di"


@immutable
class Field:
    """Flags, width and precision of a conversion; 0 is none."""

    flags: Flag = Flag.NONE
    width: int = 0
    precision: int = 0

    @property
    def left(self) -> bool:
        """Return whether the value goes to the left of its field."""
        return bool(self.flags & Flag.LEFT) or self.width < 0

    def pad(self, text: str) -> str:
        """Fill a text up to the field's width."""
        return pad(text, -abs(self.width) if self.left else self.width) if self.width else text


def integer_writer(letter: str, field: Field) -> Callable[[int], str]:
    """Return a function that shows integers as conversion `letter` does in a field."""
    native = "-" * field.left + (str(abs(field.width)) if field.width else "")
    if not native and not field.flags and not field.precision and letter in "diu":
        return str
    if not field.flags & ~Flag.LEFT and not field.precision:
        return f"%{native}{_BASES[letter]}".__mod__
    return lambda value: write_integer(value, letter, field)


def write_integer(value: int, letter: str, field: Field) -> str:
    """Show one integer; `value` is signed for d and i, else unsigned."""
    flags = field.flags
    digits = format(abs(value), _BASES[letter])
    sign = ""
    if letter in _SIGNED:
        sign = "-" if value < 0 else "+" if flags & Flag.PLUS else " " if flags & Flag.SPACE else ""
    if field.precision:
        digits = digits.zfill(field.precision)
    if flags & Flag.ALTERNATE and value:
        if letter == "o" and not digits.startswith("0"):
            digits = "0" + digits
        sign = _PREFIXES.get(letter, sign)
    if flags & Flag.ZERO and not field.precision and not field.left:
        digits = digits.zfill(field.width - len(sign))
    return field.pad(sign + digits)


def write_text(text: str, field: Field) -> str:
    """Show a text, cut to the field's precision."""
    return field.pad(clip(text, field.precision) if field.precision else text)


def write_float(value: float, letter: str, field: Field) -> str:
    """Show a floating-point number."""
    flags = field.flags
    marks = {Flag.ALTERNATE: "#", Flag.ZERO: "0", Flag.PLUS: "+", Flag.SPACE: " "}
    text = "".join(mark for flag, mark in marks.items() if flags & flag and not (flag is Flag.ZERO and field.left))
    width = f"{'-' * field.left}{abs(field.width)}" if field.width else ""
    precision = f".{field.precision}" if field.precision else ""
    return f"%{text}{width}{precision}{letter}" % value
