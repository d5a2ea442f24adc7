"""The values of machine code under construction: words and truth values, as text."""

from __future__ import annotations

from emu.support.words import WORD_MASK


class Value(str):
    """A 64-bit word in machine code, with its name in the text."""

    __slots__ = ()


class Condition(str):
    """A truth value in machine code, with its name in the text."""

    __slots__ = ()


# A word as an argument of methods: Python's numbers are constants.
Word = Value | int


def text_of(word: Word) -> str:
    """Return a word in the form of the text; a number is truncated to 64 bits, and signed."""
    if isinstance(word, str):
        return word
    word &= WORD_MASK
    return str(word - (word >> 63 << 64))
