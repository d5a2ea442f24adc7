"""The comparison of what was written with its disassembly.

Keystone takes some instructions for others, and cuts numbers that do not fit.  So each result is
disassembled.  If the text is another one, as it often is (`jz` is written `je`), each register and
each number that was written must still be in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from emu.isa.assembly import Assembly
from emu.isa.fields import number

_WORD: Final = re.compile(r"(?<![\w.])[a-z][a-z0-9_]*")
_NUMBER: Final = re.compile(r"([-+]\s*)?(?<![\w.])(0x[0-9a-f]+|0b[01]+|[0-9][\w.]*)")
# Numbers that are added; a factor is not among them.
_SUM: Final = re.compile(rf"(?<=\*)\s*{_NUMBER.pattern}|{_NUMBER.pattern}(?:\s*(?=[-+]){_NUMBER.pattern}(?!\s*\*))*")
_SHIFTED: Final = re.compile(r"#?(-?(?:0x[0-9a-f]+|[0-9]+))\s*,\s*lsl\s+#?(0x[0-9a-f]+|[0-9]+)")
_TIMES_ONE: Final = re.compile(r"\*\s*1\b")
# Widths in which two numbers may be the same bits.
_WIDTHS: Final = (8, 16, 32, 64)


def missing(assembly: Assembly, written: str, read: str) -> str | None:
    """Return what of a statement its disassembly lacks; None: nothing.

    Raises ValueError for a number that is not written as one.
    """
    written, read = written.lower(), read.lower()
    if _plain(written) == _plain(read):
        return None
    names = set(_registers(assembly, read))
    for register in _registers(assembly, written):
        if register not in names and not assembly.dropped(register, written):
            return register
    if written.split(None, 1)[0] in assembly.unchecked:
        return None
    numbers = list(_numbers(read))
    return next(
        (_text(one) for one in _numbers(written) if one and not any(_same(one, other) for other in numbers)), None
    )


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("#", ""))


def _registers(assembly: Assembly, text: str) -> Iterator[str]:
    operands = text.partition(" ")[2]
    for word in _WORD.findall(operands):
        if assembly.registers.fullmatch(word):
            yield assembly.same.get(word, word)


def _numbers(text: str) -> Iterator[int | float]:
    """Yield the numbers of a text; those that are shifted or added count as what they come to."""
    operands = _TIMES_ONE.sub("", text.partition(" ")[2])
    for found in _SHIFTED.finditer(operands):
        yield int(found.group(1), 0) << int(found.group(2), 0)
    for terms in _SUM.finditer(_SHIFTED.sub("", operands)):
        yield sum(_value(sign, digits) for sign, digits in _NUMBER.findall(terms.group()))


def _value(sign: str, digits: str) -> int | float:
    value: int | float
    if digits.startswith(("0x", "0b")):
        value = int(digits, 0)
    elif digits.isdigit():
        value = int(digits)
    else:
        try:
            value = float(digits)
        except ValueError:
            raise ValueError(f"'{digits}' is not a number: write 0x before a hexadecimal one") from None
    return -value if sign.startswith("-") else value


def _text(value: float) -> str:
    return number(value) if isinstance(value, int) else str(value)


def _same(one: float, other: float) -> bool:
    """Return whether two numbers are the same bits in some width that holds both."""
    if one == other or isinstance(one, float) or isinstance(other, float):
        return one == other
    return any(
        (one - other) % (1 << width) == 0 and all(-(1 << width - 1) <= number < 1 << width for number in (one, other))
        for width in _WIDTHS
    )
