"""The values of machine code under construction: words and truth values, as text."""

from __future__ import annotations

from emu.words import WORD_MASK


class Value(str):
    """A 64-bit word in machine code: how the text names it."""

    __slots__ = ()


class Condition(str):
    """A truth value in machine code: how the text names it."""

    __slots__ = ()


# What methods take for a word: Python's numbers stand for constants.
Word = Value | int


def text_of(word: Word) -> str:
    """Return a word as the text has it; a number is cut to 64 bits, and signed."""
    if isinstance(word, str):
        return word
    word &= WORD_MASK
    return str(word - (word >> 63 << 64))
