"""The tables of the dynamic linker: names, symbols and their versions, by PT_DYNAMIC.

It needs no section headers, so a file without them has its dynamic symbols, too.

Source: System V ABI, "Dynamic Linking"; Linux Standard Base, "Symbol Versioning"; binutils'
include/elf/common.h for DT_GNU_HASH.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple

from emu.elf.file import ElfFile
from emu.elf.headers import SegmentKind
from emu.elf.symbols import symbol_size

_HIDDEN: Final = 0x8000  # VERSYM_HIDDEN: not the version that a plain name means
_BASE: Final = 1  # VER_FLG_BASE: the file's own name, not a version
_DEFINITION: Final = struct.Struct("<HHHHIII")  # Verdef: version, flags, index, count, hash, names, next
_NEED: Final = struct.Struct("<HHIII")  # Verneed: version, count, file, names, next
_NEEDED: Final = struct.Struct("<IHHII")  # Vernaux: hash, flags, index, name, next
_WORD: Final = struct.Struct("<I")
_GNU_HASH: Final = struct.Struct("<IIII")  # buckets, first symbol, words of the filter, shift


class Tag(IntEnum):
    """Tags of the dynamic section (DT_*)."""

    HASH = 4
    STRINGS = 5
    SYMBOLS = 6
    STRINGS_SIZE = 10
    SONAME = 14
    GNU_HASH = 0x6FFF_FEF5
    VERSIONS = 0x6FFF_FFF0
    DEFINITIONS = 0x6FFF_FFFC
    NEEDS = 0x6FFF_FFFE


class Version(NamedTuple):
    """The version of a symbol; "": it has none."""

    name: str = ""
    hidden: bool = False
    """Whether a plain name means another one (`name@VERSION`, not `name@@VERSION`)."""


class Dynamic:
    """The dynamic section of a file; its damaged parts are empty."""

    def __init__(self, file: ElfFile) -> None:
        self._file = file
        form = struct.Struct("<QQ" if file.word == 8 else "<II")
        found: dict[int, int] = {}
        for header in file.program_headers:
            if header.kind == SegmentKind.DYNAMIC:
                data = bytes(file.data[header.offset : header.offset + header.file_size])
                for tag, value in form.iter_unpack(data[: len(data) // form.size * form.size]):
                    if not tag:
                        break
                    found.setdefault(tag, value)
        self._tags: Mapping[int, int] = found

    def _at(self, tag: Tag, size: int | None = None) -> bytes:
        """Return the bytes at a tag's address, to the end of their segment or `size` of them."""
        address = self._tags.get(tag, -1)
        for header in self._file.program_headers:
            if header.kind == SegmentKind.LOAD and 0 <= address - header.address < header.file_size:
                start, end = address - header.address + header.offset, header.offset + header.file_size
                return bytes(self._file.data[start : end if size is None else min(end, start + size)])
        return b""

    @cached_property
    def strings(self) -> bytes:
        """The table of names."""
        return self._at(Tag.STRINGS, self._tags.get(Tag.STRINGS_SIZE))

    def _text(self, offset: int) -> str:
        return self.strings[offset:].split(b"\0", 1)[0].decode(errors="backslashreplace")

    @property
    def soname(self) -> str | None:
        """The name by which other files request this library (DT_SONAME), None if it has none."""
        offset = self._tags.get(Tag.SONAME)
        return None if offset is None or not self.strings else self._text(offset)

    @property
    def symbols(self) -> bytes:
        """The entries of the symbol table; their number is that of a hash table."""
        size = symbol_size(self._file.word)
        found = self._at(Tag.SYMBOLS, self._count() * size)
        return found[: len(found) // size * size]

    def _count(self) -> int:
        try:
            if table := self._at(Tag.HASH, 8):
                return int(_WORD.unpack_from(table, 4)[0])
            table = self._at(Tag.GNU_HASH)
            return self._gnu_count(table) if table else 0
        except struct.error:
            return 0

    def _gnu_count(self, table: bytes) -> int:
        """Return the number behind the last symbol of the last chain, which ends with an odd word."""
        count, first, filters, _ = _GNU_HASH.unpack_from(table)
        buckets = _GNU_HASH.size + filters * self._file.word
        chains = buckets + _WORD.size * count
        last = max((one for (one,) in _WORD.iter_unpack(table[buckets:chains])), default=0)
        if last < first:
            return int(first)
        at = chains + _WORD.size * (last - first)
        while not _WORD.unpack_from(table, at)[0] & 1:
            at += _WORD.size
        return int(first + (at - chains) // _WORD.size + 1)

    @cached_property
    def versions(self) -> Sequence[Version]:
        """The versions of the symbols, in the order of their table; empty: there are none."""
        names = dict(self._names())
        data = self._at(Tag.VERSIONS) if names else b""
        count = min(self._count(), len(data) // 2)
        return [
            Version(names.get(index & ~_HIDDEN, ""), bool(index & _HIDDEN) and index & ~_HIDDEN in names)
            for (index,) in struct.iter_unpack("<H", data[: 2 * count])
        ]

    @cached_property
    def version_names(self) -> frozenset[str]:
        """The names of all versions, that the file defines or needs."""
        return frozenset(name for _, name in self._names())

    def _names(self) -> Iterator[tuple[int, str]]:
        """Yield the numbers and names of versions."""
        try:
            for data, at in _linked(self._at(Tag.DEFINITIONS), _DEFINITION):
                _, flags, index, _, _, names, _ = _DEFINITION.unpack_from(data, at)
                if not flags & _BASE:
                    yield index, self._text(_WORD.unpack_from(data, at + names)[0])
            for data, at in _linked(self._at(Tag.NEEDS), _NEED):
                names = _NEED.unpack_from(data, at)[3]
                for part, one in _linked(data[at + names :], _NEEDED):
                    _, _, index, name, _ = _NEEDED.unpack_from(part, one)
                    yield index, self._text(name)
        except struct.error:
            return


def _linked(data: bytes, form: struct.Struct) -> Iterator[tuple[bytes, int]]:
    """Yield the offsets of records; the last member of each is the distance of the next one."""
    at = 0
    while at + form.size <= len(data):
        yield data, at
        step = form.unpack_from(data, at)[-1]
        if step < form.size // 2:
            return
        at += step
