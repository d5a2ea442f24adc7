"""An ELF file in the memory of a process, and the names in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from emu.elf.image import Image
from emu.elf.source.inlined import SourceFrame
from emu.elf.symbols import Binding, Symbol
from emu.guest.base import Location


class FileArea(Protocol):
    """A mapping of a part of a file: part of `emu.guest.processes.Area`."""

    @property
    def start(self) -> int:
        """Its first address."""

    @property
    def end(self) -> int:
        """The address after its last byte."""

    @property
    def offset(self) -> int:
        """The offset in the file of its first byte."""


def load_bias(image: Image, area: FileArea, areas: Callable[[], Iterable[FileArea]]) -> int | None:
    """Return what is added to a file's own addresses where `area` maps it; None: it has no segment.

    Linkers let segments share a page of the file, which is then mapped once for each of them (lld
    does by default).  So the offset of an area alone does not tell its segment: of the possible
    biases the right one explains most of `areas`, all mappings of the file in the address space.
    """
    found = _biases(image, area)
    if len(found) > 1:
        counts = Counter(bias for one in areas() for bias in _biases(image, one))
        found.sort(key=lambda bias: -counts[bias])
    return found[0] if found else None


def _biases(image: Image, area: FileArea) -> list[int]:
    return [area.start - address for address in image.addresses_of(area.offset, area.end - area.start)]


class LoadedObject(NamedTuple):
    """An ELF file in the memory of a process."""

    path: str
    """Path in the guest."""
    image: Image
    bias: int
    """The number that is added to the file's own addresses."""
    file: object
    """The guest's file."""

    @property
    def name(self) -> str:
        """Its base name, which is the module of its probes."""
        return self.path.rsplit("/", 1)[-1]

    def holds(self, address: int) -> bool:
        """Return whether an address is in one of its segments."""
        return any(
            segment.vaddr <= address - self.bias < segment.vaddr + segment.memsz for segment in self.image.segments
        )

    def locate(self, address: int) -> Location:
        """Name one of its addresses."""
        named = self.image.caller_at(address - self.bias)
        if named is None:
            return Location(self.path, "", address)
        return Location(self.path, named[0].name, named[1])

    def source(self, address: int) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of it, the innermost first."""
        return self.image.source.frames(address - self.bias)

    def functions(self) -> Sequence[Symbol]:
        """Return its functions with a size; of aliases only the one that libproc prefers."""
        found: dict[tuple[int, int], Symbol] = {}
        for symbol in self.image.functions:
            key = (symbol.value, symbol.size)
            if symbol.size and symbol.section and (key not in found or _preference(symbol) < _preference(found[key])):
                found[key] = symbol
        return list(found.values())

    def named(self, name: str) -> Sequence[Symbol]:
        """Return its functions with a size that a name means, one for each address (`Image.named`)."""
        return [one for one in self.image.named(name) if one.is_function and one.size and one.section]


def _preference(symbol: Symbol) -> tuple[bool, int]:
    """Order aliases: global ones first, then by fewer leading underscores (libproc, Psymtab.c)."""
    return symbol.binding is Binding.LOCAL, len(symbol.name) - len(symbol.name.lstrip("_"))
