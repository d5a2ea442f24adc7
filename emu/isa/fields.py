"""Fields of instructions: where the bits of a number are, for decoders and assemblers alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from emu.displaced.decision import Displaced


@dataclass(frozen=True)
class Field:
    """A number in an instruction, whose bits may be scattered.

    `parts` are (high, low, bit): bits high..low of the instruction are those of the number from
    `bit` on.
    """

    parts: tuple[tuple[int, int, int], ...]
    signed: bool = False
    nonzero: bool = False
    """Whether 0 is another instruction, or reserved."""

    @cached_property
    def bits(self) -> int:
        """The number of bits, including those that are always 0."""
        return max(bit + high - low + 1 for high, low, bit in self.parts)

    @cached_property
    def step(self) -> int:
        """The number is a multiple of this."""
        return 1 << min(bit for _, _, bit in self.parts)

    @cached_property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest number."""
        if self.signed:
            return -(1 << self.bits - 1), (1 << self.bits - 1) - self.step
        return 0, (1 << self.bits) - self.step

    def read(self, insn: Displaced) -> int:
        """Return the number in an instruction."""
        value = sum(insn.bits(high, low) << bit for high, low, bit in self.parts)
        sign = 1 << self.bits - 1
        return (value ^ sign) - sign if self.signed else value

    def write(self, value: int) -> int:
        """Return the bits of an instruction that hold a number.

        Raises ValueError, whose text says what does not fit.
        """
        lowest, highest = self.range
        if not lowest <= value <= highest:
            raise ValueError(f"{number(value)} is out of range: it must be from {number(lowest)} to {number(highest)}")
        if value % self.step:
            raise ValueError(f"{number(value)} is not a multiple of {self.step}")
        if self.nonzero and not value:
            raise ValueError("it may not be 0")
        return sum((value >> bit & (1 << high - low + 1) - 1) << low for high, low, bit in self.parts)


def number(value: int) -> str:
    """Return a number as an assembler writes it: small ones in decimal."""
    return str(value) if -10 < value < 10 else f"{value:#x}"
