"""A program of a few instructions for the peers: one of them is executed 20480 times."""

from __future__ import annotations

import struct
import tomllib
from importlib.resources import files
from typing import Final, NamedTuple

from emu.isa import Isa

BASE: Final = 0x400000
HITS: Final = 20480
_EXECUTABLE: Final = 2
_LOAD: Final = 1
_READ_EXECUTE: Final = 5
_PAGE: Final = 4096
_IDENT: Final = b"\x7fELF"
_LITTLE: Final = 1
# By bytes of a word: class, header without the first 16 bytes, program header.
_FORMATS: Final = {8: (2, "<HHIQQQIHHHHHH", "<IIQQQQQQ"), 4: (1, "<HHIIIIIHHHHHH", "<IIIIIIII")}


class PeerProgram(NamedTuple):
    """The program as an ELF file."""

    data: bytes
    address: int
    """The address of the probed instruction."""
    offset: int
    """The offset of the probed instruction in the file."""
    entry: int
    end: int
    """The address behind the loop, where the program ends itself by a system call."""


def program(isa: Isa) -> PeerProgram:
    """Return the program of an ISA."""
    table = tomllib.loads(files("trapline.cost").joinpath("host.toml").read_text("utf-8"))[isa.name]
    code = bytes.fromhex(table["program"])
    kind, head, segment = _FORMATS[isa.word]
    size = 16 + struct.calcsize(head) + struct.calcsize(segment)
    entry, whole = BASE + size, size + len(code)
    ident = _IDENT + bytes([kind, _LITTLE, _LITTLE])
    header = struct.pack(
        head, _EXECUTABLE, isa.elf.number, _LITTLE, entry, size - struct.calcsize(segment), 0, isa.elf.object_flags,
        16 + struct.calcsize(head), struct.calcsize(segment), 1, 0, 0, 0,
    )  # fmt: skip
    fields = [_LOAD, 0, BASE, BASE, whole, whole, _PAGE]
    fields.insert(1 if isa.word == 8 else 6, _READ_EXECUTE)
    data = ident.ljust(16, b"\0") + header + struct.pack(segment, *fields) + code
    offset = table["place"]
    return PeerProgram(data, entry + offset, size + offset, entry, entry + table["end"])
