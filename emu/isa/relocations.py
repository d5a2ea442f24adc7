"""The contract of an ISA's relocations: how a linker fills in the addresses of an object file.

`emu/isa/<isa>/relocations.py` gives one `Relocations`, which linkers import when they link
(`emu.elf.link`, `emu.native.link`): no other part of an ISA needs it.  Its numbers and formulas
are those of the ISA's ELF supplement, which call the value of the symbol S, the addend A, the
address of the relocated field P, and the address of the symbol's entry in the global offset table
G.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from emu.support.immutable import immutable

if TYPE_CHECKING:
    from emu.isa.base import Isa


class Reference(NamedTuple):
    """The numbers that a relocation is computed from."""

    symbol: int
    """S"""
    addend: int
    """A"""
    address: int
    """P"""
    entry: int = 0
    """G; 0 if the relocation needs none."""
    table: int = 0
    """The address of the global offset table."""
    paired: Callable[[int], int] = lambda _address: 0
    """The value of the relocation at an address: the low half of a pc-relative address is computed
    from that of the high half (RISC-V)."""


class Field(NamedTuple):
    """The bits that a relocation sets."""

    size: int
    """Bytes that hold them."""
    put: Callable[[int, int], int]
    """(old content, value) -> new content, of which the lowest `size` bytes are stored."""
    low: int
    """The lowest permitted value."""
    high: int
    """The highest permitted value."""
    step: int = 1
    """Permitted values are multiples of it."""

    def holds(self, value: int) -> bool:
        """Return whether a value fits."""
        return self.low <= value <= self.high and not value % self.step


class Relocation(NamedTuple):
    """One type of relocation."""

    name: str
    value: Callable[[Reference], int]
    field: Field
    entry: bool = False
    """Whether the symbol needs an entry in the global offset table."""


@immutable
class Relocations:
    """The relocations of an ISA's object files."""

    types: Mapping[int, Relocation] = field(default_factory=dict)
    """The types of relocations, by their numbers."""
    ignored: frozenset[int] = frozenset()
    """Types that change nothing if the linker does not relax."""
    table_symbol: str = "_GLOBAL_OFFSET_TABLE_"
    """The symbol whose value is the address of the global offset table."""


@cache
def relocations_of(isa: Isa) -> Relocations:
    """Return the relocations of an ISA.  Only a linker imports them."""
    found: Relocations = import_module(f"emu.isa.{isa.name}.relocations").RELOCATIONS
    return found


# -- fields that several ISAs have


def word(size: int, *, signed: bool | None = None) -> Field:
    """Return the field that is a whole little-endian number of `size` bytes.

    `signed` None: it may be read as either.
    """
    bits = 8 * size
    low = 0 if signed is False else -1 << bits - 1
    high = (1 << bits - 1) - 1 if signed else (1 << bits) - 1
    return Field(size, lambda _old, value: value, low, high)


def wrapping(size: int, put: Callable[[int, int], int] = lambda _old, value: value) -> Field:
    """Return a field of `size` bytes that takes any value, modulo its size."""
    return Field(size, put, -1 << 64, 1 << 64)


def absolute(reference: Reference) -> int:
    """Return S + A."""
    return reference.symbol + reference.addend


def relative(reference: Reference) -> int:
    """Return S + A - P."""
    return reference.symbol + reference.addend - reference.address


def entry(reference: Reference) -> int:
    """Return G + A."""
    return reference.entry + reference.addend


def entry_relative(reference: Reference) -> int:
    """Return G + A - P."""
    return reference.entry + reference.addend - reference.address
