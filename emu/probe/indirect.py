"""Indirect functions: a resolver chooses their code when the program starts.

`strlen` of glibc is one: its symbol (STT_GNU_IFUNC) is the resolver's, which runs once; its choice
is stored in a word of memory that a relocation (R_*_IRELATIVE) names. A probe of strlen belongs in
the code that was chosen.

Source: System V ABI's generic supplement, "Indirect functions"; the processor supplements for the
relocation's number; Linux Standard Base, "Exception frames", for `.eh_frame_hdr`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from emu.elf.file import ElfError
from emu.elf.headers import SectionKind
from emu.elf.image import FRAME_HEADER, Image
from emu.support.words import BadAddressError

_RELA: Final = struct.Struct("<QQq")
# On i386 the addend is in the word that will hold the choice.
_REL: Final = struct.Struct("<II")
_ROW: Final = struct.Struct("<ii")


def resolved_words(image: Image) -> Mapping[int, int]:
    """Return the addresses of the words that hold the choices, by the address of the resolver."""
    wanted = image.isa.elf.irelative
    words: dict[int, int] = {}
    if image.isa.word == 4:
        return _resolved_words_32(image, wanted)
    try:
        for data in image.tables(SectionKind.RELOCATIONS_WITH_ADDENDS):
            for place, info, addend in _RELA.iter_unpack(data[: len(data) // _RELA.size * _RELA.size]):
                if info & 0xFFFF_FFFF == wanted:
                    words.setdefault(addend, place)
    except ElfError:  # a damaged table
        return {}
    return words


def _resolved_words_32(image: Image, wanted: int) -> Mapping[int, int]:
    words: dict[int, int] = {}
    try:
        for data in image.tables(SectionKind.RELOCATIONS):
            for place, info in _REL.iter_unpack(data[: len(data) // _REL.size * _REL.size]):
                if info & 0xFF == wanted:
                    words.setdefault(int.from_bytes(image.read(place, 4), "little"), place)
    except (ElfError, BadAddressError):  # a damaged table
        return {}
    return words


def function_size(image: Image, address: int) -> int:
    """Return the size of the function at an address, by symbol or unwind entry; 0: unknown."""
    found = image.symbol_at(address)
    if found is not None and not found[1] and found[0].is_function and found[0].size:
        return found[0].size
    try:
        return _frame_size(image, address)
    except (BadAddressError, struct.error):
        return 0


def _frame_size(image: Image, address: int) -> int:
    """Return the size of a function by the sorted table of `.eh_frame_hdr`."""
    header = image.frame_header
    if header is None or not header.data.startswith(FRAME_HEADER):
        return 0
    (count,) = struct.unpack_from("<I", header.data, 8)
    low, high = 0, min(count, (len(header.data) - 12) // _ROW.size)
    while low < high:
        middle = (low + high) // 2
        start, frame = _ROW.unpack_from(header.data, 12 + middle * _ROW.size)
        if header.address + start == address:
            # length, CIE pointer, start and size: both pc-relative and of 32 bits, as the table's encoding says
            (size,) = struct.unpack("<I", image.read(header.address + frame + 12, 4))
            return int(size)
        low, high = (middle + 1, high) if header.address + start < address else (low, middle)
    return 0
