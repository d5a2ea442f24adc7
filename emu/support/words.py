"""Arithmetic of 64-bit machine words, and the error of an invalid address, which all layers share.

It is not part of `emu.isa`, because the modules that the tables of the ISAs use need it.
"""

from __future__ import annotations

from typing import Final

# All the bits of a word: the results of arithmetic on Python's unbounded integers are truncated with it.
WORD_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
# Number of digits of the largest word.
_DIGITS: Final = 20


def decimal(text: str) -> int | None:
    """Return the value of a text of the digits 0 to 9; None: it is not a word.

    `str.isdigit` also accepts superscripts and the digits of other scripts, and `int` refuses texts
    of some thousand digits.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    value = int(digits or "0") if len(digits) <= _DIGITS else WORD_MASK + 1
    return value if value <= WORD_MASK else None


def signed(word: int) -> int:
    """Return a word of 64 bits as a number with a sign."""
    return word - (WORD_MASK + 1) if word >> 63 else word


class BadAddressError(Exception):
    """A load or store met an address that is not mapped (`address`)."""

    def __init__(self, address: int) -> None:
        super().__init__(f"invalid address {address:#x}")
        self.address = address
