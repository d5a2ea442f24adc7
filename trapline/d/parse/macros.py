"""Macro arguments and variables: `$1`, `$$1`, `$target` and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from trapline.d.errors import CompileError, did_you_mean
from trapline.d.parse.literals import read_digits

# Macro variables, numbers of the dtrace process (and of the process it watches).
NUMBERS: Final = ("pid", "ppid", "pgid", "sid", "uid", "euid", "gid", "egid", "projid", "taskid", "target")

_IDENTIFIER: Final = re.compile(r"[A-Za-z_`][A-Za-z0-9_`]*")
_DIGITS: Final = re.compile(r"[0-9]+")
_NUMERIC: Final = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_IN_DESCRIPTION: Final = re.compile(r"\$(\$?)([0-9]+|[A-Za-z_][A-Za-z0-9_]*)")


def is_identifier(text: str) -> bool:
    """Return whether a macro argument reads as a name."""
    return _IDENTIFIER.fullmatch(text) is not None


def parse_number(text: str) -> int | None:
    """Read a macro argument as a number with an optional sign; None if it is not one.

    Raises `CompileError` D_MACRO_OFLOW.
    """
    match = _NUMERIC.fullmatch(text)
    if match is None:
        return None
    digits = match[2]
    hexadecimal = digits[:2] in {"0x", "0X"}
    octal = digits[0] == "0" and not hexadecimal
    if octal and set(digits) & {"8", "9"}:
        return None
    value = read_digits(digits[2:] if hexadecimal else digits, 16 if hexadecimal else 8 if octal else 10)
    if value >= 1 << 64:
        raise CompileError("D_MACRO_OFLOW", f"macro argument {text} does not fit in 64 bits")
    return -value if match[1] == "-" else value


class Macros:
    """The macro arguments of one program, and which of them it has used."""

    def __init__(self, arguments: Sequence[str], numbers: Mapping[str, int], *, missing_allowed: bool) -> None:
        self._arguments = arguments
        self._numbers = numbers
        self._missing_allowed = missing_allowed
        self._used: set[int] = set()

    def allow_missing(self) -> None:
        """Read arguments that were not given as 0 or "" from here on (option defaultargs)."""
        self._missing_allowed = True

    def argument(self, macro: str) -> str | None:
        """Return the text of `$name` or `$$name`; None for an argument that is missing and may be.

        Raises `CompileError` D_MACRO_UNDEF.
        """
        name = macro.lstrip("$")
        if not _DIGITS.fullmatch(name):
            if name not in NUMBERS:
                raise CompileError("D_MACRO_UNDEF", f"unknown macro variable {macro}{did_you_mean(name, NUMBERS)}")
            return str(self._numbers.get(name, 0))
        number = read_digits(name, 10)
        if number < len(self._arguments):
            self._used.add(number)
            return self._arguments[number]
        if self._missing_allowed:
            return None
        given = len(self._arguments) - 1
        raise CompileError(
            "D_MACRO_UNDEF",
            f"macro argument {macro[:20]} is not defined: {given or 'no'} argument{'' if given == 1 else 's'} given"
            " (option defaultargs allows that)",
        )

    def check_used(self) -> None:
        """Raise `CompileError` D_MACRO_UNUSED if the last argument was never named."""
        last = len(self._arguments) - 1
        if last > 0 and last not in self._used:
            text = self._arguments[last]
            raise CompileError(
                "D_MACRO_UNUSED", f"extra argument '{text}' (${last}) is never used (option argref allows it)"
            )

    def expand_description(self, text: str) -> str:
        """Replace the macros of a probe description, at most one per field.

        Raises `CompileError` D_PDESC_INVAL for text that is not a macro.
        """
        return ":".join(self._expand_field(field) for field in text.split(":"))

    def _expand_field(self, field: str) -> str:
        start = field.find("$")
        if start < 0:
            return field
        match = _IN_DESCRIPTION.match(field, start)
        if match is None or (not _DIGITS.fullmatch(match[2]) and match[2] not in NUMBERS):
            raise CompileError(
                "D_PDESC_INVAL", f"'{field[start:]}' is not a macro: a description may hold $N or $target"
            )
        try:
            value = self.argument(match[0])
        except CompileError as error:
            raise CompileError("D_PDESC_INVAL", error.message) from None
        return field[:start] + ("" if value is None else value) + field[match.end() :]
