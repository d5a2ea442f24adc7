"""The headers of ELF files are those that pyelftools reads; large counts are in the first section's."""

from __future__ import annotations

import io
import struct

import pytest
from elftools.elf.elffile import ELFFile

from emu.elf.file import ElfError
from emu.elf.file import ElfFile as Read
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.emu.elf_file import FUNC, GLOBAL, TEXT, ElfFile

_SECTION = ("flags", "addr", "offset", "size", "link", "info", "addralign", "entsize")
_SEGMENT = ("p_flags", "p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_align")


def assert_read_alike(content: bytes) -> None:
    """Compare every header of a file with pyelftools'."""
    ours, theirs = Read("file", content), ELFFile(io.BytesIO(content))
    assert ours.header.entry == theirs.header["e_entry"]
    sections = list(theirs.iter_sections())
    assert [(one.name, *one[2:]) for one in ours.sections] == [
        (one.name, *(one[f"sh_{field}"] for field in _SECTION)) for one in sections
    ]
    notes = [number for number, one in enumerate(sections) if one["sh_type"] in {"SHT_NOTE", "SHT_NOBITS"}]
    assert [number for number, one in enumerate(ours.sections) if one.kind in {7, 8}] == notes
    segments = list(theirs.iter_segments())
    assert [one[1:] for one in ours.program_headers] == [tuple(one[field] for field in _SEGMENT) for one in segments]
    loads = [number for number, one in enumerate(segments) if one["p_type"] == "PT_LOAD"]
    assert [number for number, one in enumerate(ours.program_headers) if one.kind == 1] == loads


@pytest.mark.parametrize("isa", ISAS)
def test_headers_are_those_that_pyelftools_reads(isa):
    folder = images.built(ISAS[isa])
    for path in (folder / "kernel", folder / "boot" / "kernel" / "echo.ko", folder / "bin" / "ls"):
        assert_read_alike(path.read_bytes())


def large(isa: str) -> tuple[bytearray, int]:
    """Return a file whose counts are in its first section's header, and the offset of that."""
    file = ElfFile(isa=isa, code=b"\xc3" * 4, symbols=[("f", 0x40_0000, 4, FUNC, GLOBAL, TEXT)])
    content = bytearray(file.bytes())
    small = isa == "i386"
    counts = 44 if small else 56
    segments, _, sections, names = struct.unpack_from("<HHHH", content, counts)
    struct.pack_into("<HHHH", content, counts, 0xFFFF, 40 if small else 64, 0, 0xFFFF)
    struct.pack_into(
        "<III" if small else "<QII", content, file.shoff + (20 if small else 32), sections, names, segments
    )
    return content, file.shoff


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_counts_that_do_not_fit_are_in_the_first_section(isa):
    content, _ = large(isa)
    assert_read_alike(bytes(content))
    assert Read("file", bytes(content)).section_of_kind(2).name == ".symtab"


def test_a_large_count_that_the_file_has_no_room_for_is_refused():
    content, first = large("x86_64")
    struct.pack_into("<Q", content, first + 32, 1 << 60)
    with pytest.raises(ElfError, match="truncated: the section header table ends at byte 0x40"):
        Read("file", bytes(content))
