"""ELF files: small ones with damaged tables, through everything that reads ELF."""

from __future__ import annotations

import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from emu.elf import ElfError, Image
from emu.guest.base import BadAddressError, GuestError
from emu.guest.kernel import images
from emu.guest.linux.guest import LinuxGuest, Program
from emu.guest.linux.stdio import Standard
from emu.indirect import function_size, resolved_words
from emu.isa import ISAS
from emu.stapsdt import MarkerArgumentError, markers, parse_arguments
from tests.fuzz.case import Fuzzer
from tests.fuzz.mutation import damage
from trapline.lab.sites import SitesError, sites
from trapline.lab.user_sites import user_sites
from trapline.types import types_of

_MILLISECOND: Final = 1_000_000


class ElfFiles(Fuzzer):
    """ELF files."""

    name = "elf"
    expected = (ElfError, SitesError, GuestError, BadAddressError, MarkerArgumentError)
    quick = 400

    def __init__(self) -> None:
        self._seeds: list[tuple[bytes, tuple[int, ...]]] = []
        self._path = Path()

    def prepare(self) -> None:
        """Make the place of the file that a case is written to."""
        self._path = Path(tempfile.mkdtemp(prefix="fuzz-elf-")) / "file"

    def make(self, random: Random) -> bytes:
        """Damage a file of the guest's, most in its headers, its section table and its symbols."""
        if not self._seeds:
            for isa in ISAS.values():
                for name in ("tiny", "libzoo.so", "plugin.so"):
                    data = images.linux(isa, name).read_bytes()
                    self._seeds.append((data, _tables(data)))
        data, places = random.choice(self._seeds)
        return damage(random, data, among=places)

    def run(self, case: bytes) -> str:
        """Read all that is in the file, and start it."""
        self._path.write_bytes(case)
        image = Image(self._path)
        for symbol in image.functions[:4]:
            image.symbol_at(symbol.value + 1)
            image.caller_at(symbol.value + 1)
            function_size(image, symbol.value)
            image.offset_of(symbol.value)
        with suppress(SitesError):
            sites(self._path)
        for provider in ("pid", "uprobe"):
            with suppress(SitesError):
                user_sites(self._path, provider=provider, function="*a*")
        resolved_words(image)
        for marker in markers(image):
            parse_arguments(marker.arguments, image.isa)
        assert image.code_sections is not None
        assert image.interpreter != ""
        types_of(image)
        try:
            guest = LinuxGuest(image.isa, Program(str(self._path)), standard=Standard())
        except GuestError:
            return "read"
        guest.run(_MILLISECOND)
        return "ran"


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
