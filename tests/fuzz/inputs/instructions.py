"""Programs of random instructions, run as Linux programs."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from random import Random
from typing import Final

from emu.guest.base import GuestError
from emu.guest.linux.guest import LinuxGuest, Program
from emu.guest.linux.stdio import Standard
from emu.isa import ISAS, Isa
from tests.emu.elf_file import MACHINES
from tests.fuzz.case import Fuzzer

_CODE: Final = 0x40_0000
_DATA: Final = 0x60_0000
_MILLISECOND: Final = 1_000_000
_BYTES: Final = 64
# Prefixes and opcodes at which x86 decoders part.
_X86: Final = bytes.fromhex("f0 f2 f3 66 67 0f 2e 36 3e 26 64 65 c4 c5 62 8f 48")


class Instructions(Fuzzer):
    """Random instructions."""

    name = "instructions"
    expected = (GuestError,)
    quick = 200
    seconds = 10.0

    def __init__(self) -> None:
        self._root = Path()

    def prepare(self) -> None:
        """Make a root for the guest with only the program in it, and beside it a file that no case may reach."""
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
        path.write_bytes(_executable(isa, case[1:]))
        path.chmod(0o755)
        before = _names(self._root)
        guest = LinuxGuest(isa, Program("/program"), root=self._root, standard=Standard())
        self._fill(guest, Random(case))  # noqa: S311
        guest.run(_MILLISECOND)
        assert _names(self._root) == before, "the guest changed its root"
        assert _names(self._root.parent) == ["outside", "root"], "the guest left its root"
        return guest.ending() or "runs on"

    @staticmethod
    def _fill(guest: LinuxGuest, random: Random) -> None:
        """Give the registers values at which instructions get somewhere: addresses of data, and small numbers."""
        engine, isa = guest.kernel.engine, guest.isa
        kept = {isa.registers.sp, isa.registers.pc, isa.registers.zero}
        for register in isa.registers.registers[:32]:
            if register.slot is not None and register.name not in kept:
                value = random.choice((_DATA + random.randrange(4096), random.randrange(64)))
                engine.write_register(register.name, value)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _executable(isa: Isa, code: bytes) -> bytes:
    """Return a static program: the code, and two pages to write to."""
    wide = isa.word == 8
    header, row = (64, 56) if wide else (52, 32)
    start = header + 2 * row
    length = start + len(code)
    ident = struct.pack("<4sBBBB8x", b"\x7fELF", 1 + wide, 1, 1, 0)
    fields = (2, MACHINES[isa.name], 1, _CODE + start, header, 0, 0, header, row, 2, 0, 0, 0)
    data = ident + struct.pack("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", *fields)
    for flags, address, filesz, memsz in ((5, _CODE, length, length), (6, _DATA, 0, 8192)):
        if wide:
            data += struct.pack("<IIQQQQQQ", 1, flags, 0, address, address, filesz, memsz, 4096)
        else:
            data += struct.pack("<IIIIIIII", 1, 0, address, address, filesz, memsz, flags, 4096)
    return data + code
