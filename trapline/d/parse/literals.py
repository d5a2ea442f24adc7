"""Integer, character and string literals, and their values.

The type of an integer is given by its name in C: what that means is for the passes after this one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from trapline.d.errors import CompileError


class _Candidate(NamedTuple):
    """A type that a literal may have."""

    name: str
    """Its words in C."""
    size: int
    signed: bool

    def holds(self, value: int) -> bool:
        """Return whether a positive number is a value of the type."""
        return value < 1 << (8 * self.size - self.signed)


INT: Final = "int"
_UNSIGNED: Final = "unsigned "


@cache
def _candidates(long_size: int) -> dict[tuple[str, str], tuple[_Candidate, ...]]:
    """Return the types a literal may have, by kind and l's: the first that fits is taken.

    Source: C, and libdtrace dt_parser.c (dt_node_int).
    """
    ranks = ((INT, 4), ("long", long_size), ("long long", 8))
    signed = tuple(_Candidate(name, size, signed=True) for name, size in ranks)
    unsigned = tuple(_Candidate(_UNSIGNED + name, size, signed=False) for name, size in ranks)
    either = tuple(type_ for pair in zip(signed, unsigned, strict=True) for type_ in pair)
    return {
        (kind, "l" * longs): types[longs * len(types) // 3 :]
        for kind, types in (("signed", signed), ("unsigned", unsigned), ("either", either))
        for longs in range(3)
    }


_INTEGER: Final = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uU]?)([lL]{0,2})")
_SIMPLE: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, '"': 34, "\\": 92}
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]+|[0-7]{1,3}|[abfnrtv\"\\])")

# Digits of a number of 64 bits, in the base that has the most.
_DIGITS_MAX: Final = 64
CHARACTERS_MAX: Final = 8


def read_digits(digits: str, base: int) -> int:
    """Read a number; for one with too many digits for 64 bits the result is only a larger number.

    Python refuses to read more than some thousand decimal digits.
    """
    significant = digits.lstrip("0") or "0"
    return int(significant, base) if len(significant) <= _DIGITS_MAX else 1 << 64


def _shortened(digits: str) -> str:
    return digits if len(digits) <= _DIGITS_MAX else f"{digits[:16]}... ({len(digits)} digits)"


def parse_integer(text: str, long_size: int) -> tuple[int, str]:
    """Read an integer literal: its value, and the words of its type.

    `long_size` is the number of bytes of a long.  Raises `CompileError` D_INT_DIGIT or D_INT_OFLOW.
    """
    match = _INTEGER.fullmatch(text)
    assert match is not None
    digits, unsigned, longs = match[1], match[2], match[3].lower()
    decimal = digits[0] != "0"
    if digits[:2] in {"0x", "0X"}:
        value = read_digits(digits[2:], 16)
    elif decimal or digits == "0":
        value = read_digits(digits, 10)
    else:
        if bad := set(digits) & {"8", "9"}:
            raise CompileError("D_INT_DIGIT", f"{min(bad)} is not an octal digit: {text} starts with 0, so it is octal")
        value = read_digits(digits, 8)
    kind = "unsigned" if unsigned else "signed" if decimal else "either"
    candidates = _candidates(long_size)[kind, longs]
    for type_ in candidates:
        if type_.holds(value):
            return value, type_.name
    if value < 1 << 64:
        raise CompileError(
            "D_INT_OFLOW", f"{text} does not fit in {candidates[-1].name} (the suffix u makes it unsigned)"
        )
    raise CompileError("D_INT_OFLOW", f"{_shortened(text)} does not fit in 64 bits")


def type_of_number(number: int, long_size: int) -> str:
    """Return the words of the type of a number that no literal wrote: the first that holds it."""
    signed = _candidates(long_size)["signed", ""]
    return next((type_.name for type_ in signed if type_.holds(abs(number))), f"{_UNSIGNED}long long")


def unescape(text: str) -> bytes:
    """Replace C's escapes; an unknown one keeps its backslash, a large one its low byte."""

    def replace(match: re.Match[bytes]) -> bytes:
        escape = match[1].decode()
        if escape[0] == "x":
            return bytes([int(escape[1:], 16) & 0xFF])
        if escape[0] in "01234567":
            return bytes([int(escape, 8) & 0xFF])
        return bytes([_SIMPLE[escape]])

    return _ESCAPE.sub(replace, text.encode("utf-8", "surrogateescape"))


def parse_string(text: str) -> str:
    """Read the inside of a string literal; an embedded NUL ends it."""
    return unescape(text).split(b"\0")[0].decode("utf-8", "surrogateescape")


def parse_character(text: str) -> int:
    """Read the inside of a character constant: the first character in the highest byte used.

    Raises `CompileError` D_CHR_NULL or D_CHR_OFLOW.
    """
    data = unescape(text.replace("\\'", "'"))
    if not data:
        raise CompileError("D_CHR_NULL", "a character constant needs a character between its quotes")
    if len(data) > CHARACTERS_MAX:
        raise CompileError("D_CHR_OFLOW", f"a character constant holds up to {CHARACTERS_MAX} bytes, not {len(data)}")
    return int.from_bytes(data, "big")
