"""Programs of random instructions, run as Linux programs."""

from __future__ import annotations

import os
import struct
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from emu.elf import Image
from emu.guest.base import GuestError
from emu.guest.kernel import images
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launching import Program
from emu.guest.linux.stdio import Standard
from emu.isa import ISAS, Isa
from tests.emu.elf_file import MACHINES
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.elf import keep_parsers
from tests.fuzz.mutation import damage

_CODE: Final = 0x40_0000
DATA: Final = 0x60_0000
MILLISECOND: Final = 1_000_000
_BYTES: Final = 64
# Of the cases, those with callbacks in machine code: linking them takes longer than all else.
NATIVE: Final = 0.05
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

    def warm(self) -> None:
        """Run a program on each ISA, with callbacks of both kinds."""
        super().warm()
        keep_parsers()
        for isa in ISAS.values():
            for accelerated in (False, True):
                program = Program(str(images.linux(isa, "tiny")))
                LinuxGuest(isa, program, standard=Standard(), accelerated=accelerated).run(MILLISECOND)

    def prepare(self, folder: Path) -> None:
        """Make a root for the guest with only the program in it, and beside it a file that no case may reach."""
        self._root = folder / "root"
        self._root.mkdir()
        (self._root.parent / "outside").write_text("untouched")

    def make(self, random: Random) -> bytes:
        """Make an ISA's number, whether the engine is native, and code."""
        number = random.randrange(len(ISAS))
        isa = list(ISAS.values())[number]
        code = self._true(random, isa) if random.random() < 0.5 else self._random(random, isa)
        native = random.random() < NATIVE
        return bytes((number, native)) + code

    @staticmethod
    def _random(random: Random, isa: Isa) -> bytes:
        """Make random bytes, somewhat like instructions."""
        code = bytearray(random.randbytes(_BYTES))
        if isa.instruction_alignment == 1:
            for at in range(0, _BYTES, 5):
                if random.random() < 0.7:
                    code[at : at + 2] = bytes((random.choice(_X86), random.choice(_X86)))[: random.randint(1, 2)]
        elif isa.instruction_alignment == 2 and random.random() < 0.7:
            for at in range(0, _BYTES, 4):
                code[at] |= 3  # instructions of four bytes
        return bytes(code)

    @staticmethod
    def _true(random: Random, isa: Isa) -> bytes:
        """Put pieces of a real program together, some of them damaged."""
        text = _text(isa.name)
        pieces = bytearray()
        while len(pieces) < _BYTES:
            at = random.randrange(0, len(text) - 16, isa.instruction_alignment)
            pieces += text[at : at + 4 * random.randint(1, 4)]
        return damage(random, bytes(pieces), 3) if random.random() < 0.5 else bytes(pieces)

    def run(self, case: bytes) -> str:
        """Run the code for a millisecond of the guest's time, with a system call now and then refused."""
        isa = list(ISAS.values())[case[0]]
        path = self._root / "program"
        path.write_bytes(executable(isa, case[2:]))
        path.chmod(0o755)
        guest = LinuxGuest(isa, Program("/program"), root=self._root, standard=Standard(), accelerated=bool(case[1]))
        self._fill(guest, Random(case))  # noqa: S311
        guest.run(MILLISECOND)
        assert names_in(self._root) == ["program"], "the guest changed its root"
        assert names_in(self._root.parent) == ["outside", "root"], "the guest left its root"
        return f"{guest.ending() or 'runs on'}: {guest.engine.instructions} instructions to {guest.engine.pc:#x}"

    @staticmethod
    def _fill(guest: LinuxGuest, random: Random) -> None:
        """Give the registers values at which instructions get somewhere: addresses of data, and small numbers."""
        engine, isa = guest.kernel.engine, guest.isa
        kept = {isa.registers.sp, isa.registers.pc, isa.registers.zero}
        for register in isa.registers.registers[:32]:
            if register.slot is not None and register.name not in kept:
                value = random.choice((DATA + random.randrange(4096), random.randrange(64)))
                engine.write_register(register.name, value)


@cache
def _text(isa: str) -> bytes:
    """Return the code of a program."""
    sections = Image(images.linux(ISAS[isa], "zoo")).code_sections
    return max((section.data for section in sections), key=len)


def names_in(folder: Path) -> list[str]:
    """Return what is in a folder of the host."""
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
