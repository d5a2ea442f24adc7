"""The encodings of an ISA, in chunks that can be classified in any order and in any process.

AArch64 has one form of 2^32 words.  RISC-V has 2^30 words of 32 bits, those whose two low bits are
3, and for each other value of these bits 2^14 words of 16 bits; a compressed instruction does not
depend on the 16 bits after it, so these represent the other three quarters of 2^32. x86-64 and
i386, whose instructions are up to 15 bytes long, are enumerated by class:
`trapline.lab.check.encodings.x86`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

# The largest number of encodings of a chunk for rules that are code, such as a user's own on every ISA.
ASKED: Final = 1 << 16
# The largest number of encodings of a chunk: some seconds of work.
CHUNK: Final = {"aarch64": 1 << 24, "riscv64": 1 << 24, "x86_64": ASKED, "i386": ASKED}
# The form of the encodings made for each row from its mask and value, so that no sample misses a narrow row.
WITNESSES: Final = "witnesses"


class Form(NamedTuple):
    """Encodings of fixed length: number `i` is the little-endian word `i << shift | low`."""

    size: int
    """Bytes of an encoding."""
    shift: int
    low: int

    @property
    def encodings(self) -> int:
        """The number of encodings."""
        return 1 << 8 * self.size - self.shift

    def word(self, number: int) -> int:
        """Return encoding `number`."""
        return number << self.shift | self.low

    def holds(self, word: int) -> bool:
        """Return whether a word has this form."""
        return word & (1 << self.shift) - 1 == self.low and word < 1 << 8 * self.size


# Encodings of fixed length, by ISA and name.
FORMS: Final[Mapping[str, Mapping[str, Form]]] = {
    "aarch64": {"word": Form(4, 0, 0)},
    "riscv64": {
        "word": Form(4, 2, 3),
        "half 0": Form(2, 2, 0),
        "half 1": Form(2, 2, 1),
        "half 2": Form(2, 2, 2),
    },
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of an ISA's encodings: `count` of a form, from number `first` in steps of `stride`.

    `rules` names the user's rules, as `trapline.lab.check.cpu.rules_under_test.load_rules` takes
    them; "" is the package's own tables.  It is hashable and picklable, and its fields can be
    stored as a tuple.
    """

    isa: str
    form: str
    first: int
    count: int
    stride: int = 1
    rules: str = ""

    @property
    def numbers(self) -> range:
        """The numbers of its encodings within the form."""
        return range(self.first, self.first + self.count * self.stride, self.stride)
