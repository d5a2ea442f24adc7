"""The entries of call frame information: which stretch of code each describes, and where it stands.

Only the heads of the entries are read at first, which takes some microseconds each; an entry's
program is decoded when a stack needs it (`emu.elf.unwind.rows`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from emu.elf.unwind.reader import OMITTED, FrameError, Reader

# The length that says that a length of 64 bits follows.
_LONG: Final = 0xFFFF_FFFF
# The mark of a common entry of .debug_frame, instead of its offset.
_COMMON_32: Final = 0xFFFF_FFFF
_COMMON_64: Final = 0xFFFF_FFFF_FFFF_FFFF
_VERSIONS: Final = (1, 3, 4)


class FrameSection(NamedTuple):
    """A section as the file has it."""

    address: int
    data: bytes
    debug: bool
    """Whether it is .debug_frame; else it is .eh_frame."""


class CommonEntry(NamedTuple):
    """The common part of entries (CIE)."""

    section: FrameSection
    code_alignment: int
    data_alignment: int
    return_column: int
    """Number of the register that stands for the return address."""
    signal: bool
    """Whether these are frames of signals: their pc is the interrupted one, not a return address."""
    pointers: int
    """The encoding of pointers."""
    augmented: bool
    """Whether entries have data of their own before their program."""
    program: tuple[int, int]
    """The start and the end of the program in the section."""


class FrameEntry(NamedTuple):
    """The entry of a stretch of code (FDE)."""

    start: int
    size: int
    common: CommonEntry
    program: tuple[int, int]
    """The start and the end of the program in the section."""


class FrameEntries:
    """The entries of some sections, by address.

    Nothing is known of a damaged entry, or of the entries behind a damaged length.
    """

    def __init__(self, sections: Sequence[FrameSection], word: int) -> None:
        self._sections = sections
        self._word = word
        self._commons: dict[tuple[int, int], CommonEntry] = {}

    @cached_property
    def all(self) -> Sequence[FrameEntry]:
        """All entries that describe code, by address; the first section's come first."""
        found: dict[int, FrameEntry] = {}
        for number, section in enumerate(self._sections):
            for entry in self._entries(number, section):
                if entry.size:
                    found.setdefault(entry.start, entry)
        return sorted(found.values(), key=lambda entry: entry.start)

    @cached_property
    def _starts(self) -> list[int]:
        return [entry.start for entry in self.all]

    def at(self, address: int) -> FrameEntry | None:
        """Return the entry that describes an instruction, None if there is none."""
        index = bisect_right(self._starts, address) - 1
        entry = self.all[index] if index >= 0 else None
        return entry if entry is not None and address < entry.start + entry.size else None

    def _entries(self, number: int, section: FrameSection) -> Iterator[FrameEntry]:
        reader = Reader(section.data, 0, len(section.data))
        while reader.more:
            try:
                at, length, wide = reader.offset, reader.number(4), False
                if length == _LONG:
                    length, wide = reader.number(8), True
                if not length:
                    if section.debug:
                        continue
                    return  # a terminator
                start = reader.offset
                reader.take(length)
                entry = self._entry(number, section, at, Reader(section.data, start, start + length), wide=wide)
            except FrameError:
                if reader.offset + 4 > reader.end or reader.offset <= at:
                    return
                continue
            if entry is not None:
                yield entry

    def _entry(self, number: int, section: FrameSection, at: int, reader: Reader, *, wide: bool) -> FrameEntry | None:
        """Read the head of an entry; None: it is a common one."""
        start_of_entry = reader.offset
        pointer = reader.number(8 if wide and section.debug else 4)
        if pointer == ((_COMMON_64 if wide else _COMMON_32) if section.debug else 0):
            self._commons[number, at] = self._common(section, reader)
            return None
        common = self._commons.get((number, pointer if section.debug else start_of_entry - pointer))
        if common is None:
            raise FrameError("an entry without its common one")
        start = reader.pointer(common.pointers, section.address, self._word)
        size = reader.pointer(common.pointers & 0x0F, section.address, self._word)
        if common.augmented:
            reader.block()
        return FrameEntry(start, size, common, (reader.offset, reader.end))

    def _common(self, section: FrameSection, reader: Reader) -> CommonEntry:
        version = reader.number(1)
        if version not in _VERSIONS:
            raise FrameError(f"call frame information of version {version}")
        augmentation = reader.text()
        if version == 4:
            reader.take(2)  # the sizes of addresses and of segment selectors
        code, data = reader.uleb(), reader.sleb()
        column = reader.number(1) if version == 1 else reader.uleb()
        pointers, augmented = 0, augmentation.startswith(b"z")
        if augmented:
            length = reader.uleb()
            inner = Reader(section.data, reader.offset, reader.offset + length)
            pointers = self._pointers(augmentation[1:], inner, section)
            reader.take(length)
        elif augmentation:
            raise FrameError(f"the unknown augmentation {augmentation!r}")
        return CommonEntry(
            section, code, data, column, b"S" in augmentation, pointers, augmented, (reader.offset, reader.end)
        )

    def _pointers(self, augmentation: bytes, reader: Reader, section: FrameSection) -> int:
        """Return the encoding of pointers that the letters of an augmentation tell."""
        pointers = 0
        for letter in augmentation:
            match chr(letter):
                case "R":
                    pointers = reader.number(1)
                case "L":
                    reader.take(1)
                case "P":
                    encoding = reader.number(1)
                    if encoding != OMITTED:
                        reader.pointer(encoding & 0x7F, section.address, self._word)
                case "S" | "B":
                    pass  # a signal's frame; return addresses signed with key B
                case _:
                    break  # what follows is not needed
        return pointers
