"""Programs of random instructions, run as Linux programs."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Final

from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.guest.linux.guest import LinuxGuest
from emu.isa import ISAS, Isa
from tests.fuzz.inputs.rooted import DATA, MILLISECOND, NATIVE, RootedFuzzer
from tests.fuzz.mutation import damage

_BYTES: Final = 64
# Prefixes and opcodes at which x86 decoders part.
_X86: Final = bytes.fromhex("f0 f2 f3 66 67 0f 2e 36 3e 26 64 65 c4 c5 62 8f 48")


class Instructions(RootedFuzzer):
    """Random instructions."""

    name = "instructions"
    warmed = (False, True)

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
        guest = self.guest(isa, case[2:], accelerated=bool(case[1]))
        self._fill(guest, Random(case))  # noqa: S311
        guest.run(MILLISECOND)
        self.check_root()
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
