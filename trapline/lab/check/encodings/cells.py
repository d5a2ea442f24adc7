"""Counting: encodings with the same result of the tables and of capstone are in one cell.

A cell's key is the row of each provider and the exemption that applies there, and capstone's
result. 2^32 words are in a few hundred cells, so the results are compared for cells, not for words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from trapline.lab.check.encodings.decoder import BITS, decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS, Exemption
from trapline.lab.check.encodings.space import FORMS, Chunk
from trapline.lab.check.encodings.tables import row_of, tables

ROW_BITS: Final = 6
EXEMPTION_BITS: Final = 5
# Bits of capstone's instruction numbers.
NUMBER_BITS: Final = 12


class Choice(NamedTuple):
    """One provider's part of a key."""

    row: int
    exemption: int
    """Index among the provider's exemptions plus one; 0 for none."""


class Key(NamedTuple):
    """A decoded key."""

    choices: tuple[Choice, ...]
    """In the order of `tables(isa)`."""
    number: int
    bits: int


class Cell(NamedTuple):
    """Encodings with the same result of the tables and of capstone."""

    key: int
    encodings: int
    example: int
    """The first of them."""


def exemptions(isa: str, provider: str) -> tuple[Exemption, ...]:
    """Return the exemptions of a provider."""
    return tuple(exemption for exemption in EXEMPTIONS[isa] if provider in exemption.providers)


def pack(key: Key) -> int:
    """Return the number of a key."""
    packed = 0
    for choice in key.choices:
        assert choice.row < 1 << ROW_BITS, "the table has more rows than a key can hold"
        packed = (packed << ROW_BITS | choice.row) << EXEMPTION_BITS | choice.exemption
    return (packed << NUMBER_BITS | key.number) << BITS | key.bits


def unpack(isa: str, packed: int) -> Key:
    """Return the key of a number."""

    def take(bits: int) -> int:
        nonlocal packed
        value = packed & (1 << bits) - 1
        packed >>= bits
        return value

    bits, number = take(BITS), take(NUMBER_BITS)
    choices = []
    for _ in tables(isa):
        exemption, row = take(EXEMPTION_BITS), take(ROW_BITS)
        choices.append(Choice(row, exemption))
    return Key(tuple(reversed(choices)), number, bits)


def choice(isa: str, provider: str, word: int, size: int) -> Choice:
    """Return a provider's decision about a word of `size` bytes."""
    found = next((index for index, one in enumerate(exemptions(isa, provider), 1) if word & one.mask == one.value), 0)
    return Choice(row_of(tables(isa)[provider], word, size), found)


def count_words(isa: str, words: Iterable[int], size: int) -> Iterator[Cell]:
    """Count words one by one; `encodings.native` does the same a hundred times faster."""
    counts: dict[int, tuple[int, int]] = {}
    other = decoder(isa)
    for word in words:
        known = other.decode(word.to_bytes(size, "little"))
        choices = tuple(choice(isa, provider, word, size) for provider in tables(isa))
        key = pack(Key(choices, other.number if known else 0, other.bits if known else 0))
        count, example = counts.get(key, (0, word))
        counts[key] = count + 1, example
    return (Cell(key, count, example) for key, (count, example) in counts.items())


def count(chunk: Chunk) -> Iterator[Cell]:
    """Count a chunk's words one by one."""
    form = FORMS[chunk.isa][chunk.form]
    return count_words(chunk.isa, map(form.word, chunk.numbers), form.size)
