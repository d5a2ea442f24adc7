"""Debugging information: DWARF, CTF and BTF with damaged bytes, asked for every name that it has."""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from pathlib import Path
from random import Random
from typing import Any, Final

from emu.elf.image import ElfError, Image
from emu.guest.kernel.boot import images
from emu.guest.linux_kernel.files.btf import Btf, BtfError
from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.elf import keep_parsers
from tests.fuzz.mutation import damage
from trapline.d.errors import CompileError
from trapline.d.types.rules import align_of, size_of
from trapline.d.types.types import Composite
from trapline.types import types_of
from trapline.types.btf import BtfTypes

# Sections of debugging information, and the numbers of seeds of each kind.
_SECTIONS: Final = re.compile(r"\.(debug_.*|SUNW_ctf|symtab)")
_MODULES: Final = ("sumcall", "echo", "dtrace")
_NAMES: Final = ("node", "color", "u", "node_t", "size_t", "head", "table", "walk", "pi", "thread", "int", "", "x")
_WORD: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,30}")


class DebugTypes(Fuzzer):
    """Types of programs, modules and kernels."""

    name = "types"
    expected = (ElfError, BtfError, CompileError)
    seconds = 10.0
    quick = 100

    def __init__(self) -> None:
        self._seeds: list[tuple[bytes, range | tuple[int, ...]]] = []

    def warm(self) -> None:
        """Read one."""
        super().warm()
        keep_parsers()

    def _read(self) -> None:
        texts = json.loads((Path(__file__).parent / "types.json").read_text())
        programs = [b64decode(texts[name]) for name in ("dwarf4", "dwarf5")]
        for isa in ISAS.values():
            folder = images.built(isa) / "boot" / "kernel"
            programs += [(folder / f"{name}.ko").read_bytes() for name in _MODULES]
        self._seeds = [(data, _places(data)) for data in programs]
        btf = b64decode(texts["btf"])
        self._seeds += [(btf, range(len(btf)))] * 4

    def make(self, random: Random) -> bytes:
        """Damage a file's debugging information."""
        if not self._seeds:
            self._read()
        data, places = random.choice(self._seeds)
        return damage(random, data, among=places)

    def run(self, case: bytes) -> str:
        """Ask for types by name, and for the size and the members of each."""
        types: Any = types_of(Image("file", content=case)) if case[:4] == b"\x7fELF" else BtfTypes(Btf(case))
        names = [*_NAMES, *(word.decode() for word in _WORD.findall(case[-2000:])[:20])]
        found = 0
        for name in names:
            for keyword in ("struct", "union", "enum"):
                found += self._look(types.tag(keyword, name))
            for ask in (types.typedef, types.variable, types.function):
                found += self._look(ask(name))
        return f"read: {found} types"

    @staticmethod
    def _look(type_: Any) -> int:
        if type_ is None:
            return 0
        size_of(type_)
        align_of(type_)
        if isinstance(type_, Composite):
            for member in type_.members or ():
                size_of(member.type)
        return 1


def _places(data: bytes) -> tuple[int, ...]:
    """Return the offsets of a file's debugging information."""
    image = Image("file", content=data)
    places: list[int] = []
    for section in image.elf.iter_sections():
        if _SECTIONS.fullmatch(section.name):
            places += range(section["sh_offset"], section["sh_offset"] + section["sh_size"])
    assert places, struct.unpack_from("<16s", data)
    return tuple(places)
