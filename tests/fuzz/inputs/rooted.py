"""Linux programs that run in a root of their own, which they must not change or leave."""

from __future__ import annotations

import os
import struct
from abc import ABC
from pathlib import Path
from typing import ClassVar, Final

from emu.guest.base import GuestError
from emu.guest.kernel.boot import images
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import ISAS, Isa
from tests.emu.elf_file import MACHINES
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.elf import keep_parsers

_CODE: Final = 0x40_0000
DATA: Final = 0x60_0000
MILLISECOND: Final = 1_000_000
# The share of cases with callbacks in machine code: linking them takes longer than all else.
NATIVE: Final = 0.05


class RootedFuzzer(Fuzzer, ABC):
    """Runs programs of its cases in a root that has only the program in it."""

    expected = (GuestError,)
    quick = 50
    seconds = 10.0
    warmed: ClassVar[tuple[bool | None, ...]] = (None,)
    """The kinds of callbacks that are compiled before the first case: whether machine code; None: the default."""

    def __init__(self) -> None:
        self.root = Path()

    def warm(self) -> None:
        """Run a program on each ISA."""
        super().warm()
        keep_parsers()
        for isa in ISAS.values():
            for accelerated in self.warmed:
                program = Program(str(images.linux(isa, "tiny")))
                LinuxGuest(isa, program, standard=Standard(), accelerated=accelerated).run(MILLISECOND)

    def prepare(self, folder: Path) -> None:
        """Make a root for the guest, and beside it a file that no case may reach."""
        self.root = folder / "root"
        self.root.mkdir()
        (folder / "outside").write_text("untouched")

    def guest(self, isa: Isa, code: bytes, *, ram: int | None = None, accelerated: bool) -> LinuxGuest:
        """Return a guest that is about to execute this code."""
        path = self.root / "program"
        path.write_bytes(executable(isa, code))
        path.chmod(0o755)
        size = {} if ram is None else {"ram": ram}
        return LinuxGuest(
            isa, Program("/program"), root=self.root, standard=Standard(), accelerated=accelerated, **size
        )

    def check_root(self, *others: str) -> None:
        """Check that the root has only the program and `others`, and that the guest has not left it."""
        assert _names_in(self.root) == ["program", *others], "the guest changed its root"
        assert _names_in(self.root.parent) == ["outside", "root"], "the guest left its root"


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder of the host."""
    return sorted(os.listdir(folder))  # noqa: PTH208  at every case


def executable(isa: Isa, code: bytes) -> bytes:
    """Return a static program: the code, and two pages to write to."""
    wide = isa.word == 8
    header, row = (64, 56) if wide else (52, 32)
    start = header + 2 * row
    length = start + len(code)
    ident = struct.pack("<4sBBBB8x", b"\x7fELF", 1 + wide, 1, 1, 0)
    fields = (2, MACHINES[isa.name], 1, _CODE + start, header, 0, 0, header, row, 2, 0, 0, 0)
    data = ident + struct.pack("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", *fields)
    for flags, address, filesz, memsz in ((5, _CODE, length, length), (6, DATA, 0, 8192)):
        if wide:
            data += struct.pack("<IIQQQQQQ", 1, flags, 0, address, address, filesz, memsz, 4096)
        else:
            data += struct.pack("<IIIIIIII", 1, 0, address, address, filesz, memsz, flags, 4096)
    return data + code
