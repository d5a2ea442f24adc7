"""ELF files: small ones with damaged tables, through everything that reads ELF."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

from elftools.elf.structs import ELFStructs

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.elf.stapsdt import markers, parse_arguments
from emu.guest.base import GuestError
from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS
from emu.probe.indirect import function_size, resolved_words
from emu.support.words import BadAddressError
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage
from trapline.lab.sites.fbt import SitesError, sites
from trapline.lab.sites.instructions import user_sites
from trapline.types import types_of

_MILLISECOND: Final = 1_000_000
_RAM: Final = 256 << 20
# Kinds of files whose parsers are kept.
_KINDS: Final = 200


class ElfFiles(Fuzzer):
    """ELF files: each is read by one of the readers."""

    name = "elf"
    expected = (ElfError, SitesError, GuestError, BadAddressError)
    quick = 250

    def __init__(self) -> None:
        self._seeds: list[tuple[bytes, tuple[int, ...]]] = []
        self._path = Path()
        self._readers: tuple[Callable[[], str], ...] = (
            self._symbols, self._rest, self._fbt, self._pid, self._uprobe, self._linux
        )  # fmt: skip

    def warm(self) -> None:
        """Read one file."""
        super().warm()
        keep_parsers()

    def prepare(self, folder: Path) -> None:
        """Make the place of the file that a case is written to."""
        self._path = folder / "file"
        self._path.touch(0o755)

    def make(self, random: Random) -> bytes:
        """Choose a reader, and damage a file of the guest's, most in its headers, section table and symbols."""
        if not self._seeds:
            for isa in ISAS.values():
                for name in ("tiny", "libzoo.so", "plugin.so"):
                    data = images.linux(isa, name).read_bytes()
                    self._seeds.append((data, _tables(data)))
        reader = random.randrange(len(self._readers))
        data, places = random.choice(self._seeds)
        return bytes((reader,)) + damage(random, data, among=places)

    def run(self, case: bytes) -> str:
        """Read what is in the file, or start it."""
        self._path.write_bytes(case[1:])
        return self._readers[case[0]]()

    def _symbols(self) -> str:
        image = Image(self._path)
        for symbol in image.functions[:4]:
            image.symbol_at(symbol.value + 1)
            image.caller_at(symbol.value + 1)
            function_size(image, symbol.value)
            image.offset_of(symbol.value)
        assert image.code_sections is not None
        assert image.interpreter != ""
        return "symbols"

    def _rest(self) -> str:
        image = Image(self._path)
        resolved_words(image)
        for marker in markers(image):
            parse_arguments(marker.arguments, image.isa)
        types_of(image)
        return "markers and types"

    def _fbt(self) -> str:
        return f"fbt: {len(sites(self._path))}"

    def _pid(self) -> str:
        return f"pid: {len(user_sites(self._path, function='*a*'))}"

    def _uprobe(self) -> str:
        return f"uprobe: {len(user_sites(self._path, provider='uprobe', function='*a*'))}"

    def _linux(self) -> str:
        guest = LinuxGuest(
            Image(self._path).isa, Program("/file"), root=self._path.parent, standard=Standard(), ram=_RAM
        )
        guest.run(_MILLISECOND)
        return f"ran: {guest.ending()} at {guest.engine.instructions}"


def keep_parsers() -> None:
    """Keep pyelftools' parsers: it makes some hundred of them for each file, most of a case's time."""
    _keep("create_basic_structs")
    _keep("create_advanced_structs")


def _keep(name: str) -> None:
    """Make a function of `ELFStructs` remember the parsers that it makes for each kind of file."""
    make: Any = getattr(ELFStructs, name)
    if make.__name__ != name:
        return  # it does already
    made: dict[tuple[object, ...], dict[str, object]] = {}

    def kept(self: Any, *kind: object) -> None:
        key = (self.little_endian, self.elfclass, *kind)
        if key not in made:
            make(self, *kind)
            if len(made) < _KINDS:
                made[key] = dict(vars(self))
        else:
            vars(self).update(made[key])

    setattr(ELFStructs, name, kept)


def _tables(data: bytes) -> tuple[int, ...]:
    """Return the offsets of an ELF file's headers, tables, notes and symbols."""
    wide = data[4] == 2
    form, size = ("<QQ", 64) if wide else ("<II", 52)
    phoff, shoff = struct.unpack_from(form, data, 32 if wide else 28)
    phentsize, phnum, shentsize, shnum, _ = struct.unpack_from("<HHHHH", data, 54 if wide else 42)
    places = [*range(16, size), *range(phoff, phoff + phentsize * phnum), *range(shoff, shoff + shentsize * shnum)]
    for number in range(shnum):
        at = shoff + number * shentsize
        kind = struct.unpack_from("<I", data, at + 4)[0]
        offset, length = struct.unpack_from(form, data, at + (24 if wide else 16))
        if kind in {2, 3, 4, 6, 7, 9, 11}:  # symbols, strings, relocations, dynamic, notes
            places += range(offset, offset + min(length, 400))
    return tuple(places)
