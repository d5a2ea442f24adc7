"""Programs of random instructions, run as Linux programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from emu.guest.base import GuestError
from emu.guest.linux.guest import LinuxGuest, Program
from emu.guest.linux.stdio import Standard
from emu.isa import ISAS
from tests.emu.elf_file import ElfFile
from tests.fuzz.case import Fuzzer

_MILLISECOND: Final = 1_000_000
_BYTES: Final = 64
# Prefixes and opcodes at which x86 decoders part.
_X86: Final = bytes((0xF0, 0xF2, 0xF3, 0x66, 0x67, 0x0F, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0xC4, 0xC5, 0x62, 0x8F, 0x48))


class Instructions(Fuzzer):
    """Random instructions."""

    name = "instructions"
    expected = (GuestError,)
    quick = 200
    seconds = 10.0

    def __init__(self) -> None:
        self._root = Path()

    def prepare(self) -> None:
        """Make a root for the guest, with nothing in it but the program, and beside it a file that no case may reach."""
        self._root = Path(tempfile.mkdtemp(prefix="fuzz-code-")) / "root"
        self._root.mkdir()
        (self._root.parent / "outside").write_text("untouched")

    def make(self, random: Random) -> bytes:
        """Make an ISA's number and code."""
        number = random.randrange(len(ISAS))
        isa = list(ISAS.values())[number]
        code = bytearray(random.randbytes(_BYTES))
        if isa.instruction_alignment == 1:
            for at in range(0, _BYTES, 5):
                if random.random() < 0.7:
                    code[at : at + 2] = bytes((random.choice(_X86), random.choice(_X86)))[: random.randint(1, 2)]
        elif isa.name == "riscv64" and random.random() < 0.7:
            for at in range(0, _BYTES, 4):
                code[at] |= 3  # instructions of four bytes
        return bytes((number,)) + bytes(code)

    def run(self, case: bytes) -> str:
        """Run the code for a millisecond of the guest's time, with a system call now and then refused."""
        isa = list(ISAS.values())[case[0]]
        path = self._root / "program"
        file = ElfFile(isa.name, code=case[1:]).function("_start", 0x40_0000, len(case) - 1)
        path.write_bytes(file.bytes())
        path.chmod(0o755)
        before = sorted(os.listdir(self._root))
        guest = LinuxGuest(isa, Program("/program"), root=self._root, standard=Standard())
        guest.run(_MILLISECOND)
        assert sorted(os.listdir(self._root)) == before, "the guest changed its root"
        assert sorted(os.listdir(self._root.parent)) == ["outside", "root"], "the guest left its root"
        return guest.ending() or "runs on"
