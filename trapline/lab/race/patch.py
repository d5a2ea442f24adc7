"""A patch: a function's code, the site in it, and the bytes that a provider writes there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from emu.isa import disassembly
from emu.isa.base import Isa
from emu.isa.disassembly import instructions

# Where the code is placed: the first of eight pages (`trapline.lab.check.cpu.aliased.RIGHTS`).
PLACE = 0x40_0000
# Instructions before and after the patch that the CPUs execute, too.
_AROUND = 2


class RaceError(Exception):
    """The race cannot be explored; the message says why, on one line."""


class NoPortError(RaceError):
    """The provider, or the file, does not exist on an ISA."""


class Kind(Enum):
    """The effect of the patch on a CPU that executes it."""

    TRAP = "a breakpoint"
    JUMP = "a jump"


@dataclass(frozen=True)
class Patch:
    """One patch of one function."""

    isa: Isa
    provider: str
    name: str
    """The name that the user gave: provider:module:function:name."""
    function: str
    code: bytes
    """The function's bytes, and a few bytes after them."""
    address: int
    """The address of the code: the offset in its page is that of the file."""
    offset: int
    """The offset of the patch, in bytes from the function's start."""
    new: bytes
    kind: Kind
    scanned: int = 0
    """The number of bytes of `code` that belong to the function; 0: all."""

    @property
    def site(self) -> int:
        """The address of the patch."""
        return self.address + self.offset

    @property
    def old(self) -> bytes:
        """The bytes that the patch replaces."""
        return self.code[self.offset : self.offset + len(self.new)]

    @property
    def end(self) -> int:
        """The address after the patch."""
        return self.site + len(self.new)

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        """The addresses of the original instructions, up to a few after the patch."""
        return _boundaries(self.isa, self.code, self.address, self.end, _AROUND)

    @cached_property
    def patched_boundaries(self) -> frozenset[int]:
        """The addresses of instructions within the patched bytes, after the patch."""
        if self.kind is Kind.TRAP:
            return frozenset({self.site})
        found = _boundaries(self.isa, self.new + self.code[self.offset + len(self.new) :], self.site, self.end, 0)
        return frozenset(at for at in found if at < self.end)

    @property
    def starts(self) -> tuple[int, ...]:
        """The addresses at which the CPUs may begin: instructions before the patch, in order."""
        index = self.boundaries.index(self.site)
        return self.boundaries[max(0, index - _AROUND) : index + 1]

    @property
    def stop(self) -> int:
        """The address at which a CPU has passed the patch."""
        return self.boundaries[-1]

    def image(self, *, patched: bool) -> bytes:
        """Return the function's bytes with or without the patch."""
        if not patched:
            return self.code
        return self.code[: self.offset] + self.new + self.code[self.offset + len(self.new) :]

    def text(self, code: bytes, address: int) -> str:
        """Return the disassembly of the instruction that begins these bytes, for an address."""
        found = disassembly.first(self.isa, code, address)
        return found.text if found else disassembly.NO_INSTRUCTION

    def where(self, address: int) -> str:
        """Return the name of an address."""
        inside = 0 <= address - self.address <= len(self.code)
        return f"{self.function}+{address - self.address:#x}" if inside else f"{address:#x}"


def _boundaries(isa: Isa, code: bytes, address: int, end: int, more: int) -> tuple[int, ...]:
    """Return the addresses of instructions until `more` after `end`, and the address after those."""
    found = [address]
    for at, size in instructions(isa.instruction_length, code):
        found.append(address + at + size)
        if found[-1] >= end:
            more -= 1
        if more < 0:
            break
    return tuple(found)
