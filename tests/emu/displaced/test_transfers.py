"""Transfers of control on x86, in 64-bit and in 32-bit mode: their plans have a CPU's effects."""

from __future__ import annotations

import random

import pytest

from emu.displaced.decision import Code, Emulated
from emu.isa import ISAS
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from tests.emu.displaced.ins import CODE
from tests.emu.displaced.machines import MEMORY_SIZE, PlanMachine, RealMachine, register_names

CASES = 2500
# The limits of displacements, and of registers below 0.
NEAR = 0x1000
FAR = 0x40_0000
# Bits of the flags that a program sets: CF, PF, AF, ZF, SF, OF.
FLAGS = (0, 2, 4, 6, 7, 11)
FS, GS = b"\x64", b"\x65"
# Unicorn takes more than that, in a `ret` with a number, for negative, which no CPU does.
LARGEST_POP = 0x7FFF
# Memory that leads to mapped memory, whether a pointer is of 4 or 8 bytes.
FILLING = bytes.fromhex("0005020000000000")


class OutsideError(Exception):
    """The case reaches memory that the CPU has not, or that holds its code."""


class Machine:
    """A machine of plans, with flags and segments, and the CPU's memory."""

    def __init__(self, isa, others):
        self._machine, self._others = PlanMachine(isa), others
        self.isa, self.words = isa, self._machine.words
        self.written = {}

    def load(self, address, size):
        if not (0 <= address < CODE - 16 or CODE + 16 <= address < MEMORY_SIZE - 8):
            raise OutsideError
        return int.from_bytes(
            (self.written.get(address + at, FILLING[address + at & 7]) for at in range(size)), "little"
        )

    def store(self, address, size, value):
        if not CODE + 16 <= address < MEMORY_SIZE - 8:
            raise OutsideError
        self.written.update((address + at, value >> 8 * at & 0xFF) for at in range(size))

    def read_register(self, name):
        return self._others[name] if name in self._others else self._machine.read_register(name)

    def run(self, plan):
        """Carry a plan out; return the registers."""
        PlanMachine.run(self, plan)
        return {name: self._machine.read_register(name) for name in register_names(self.isa)}


def little(number, size):
    return (number & (1 << 8 * size) - 1).to_bytes(size, "little")


def indirect(draw):
    """Make a jmp or a call by a register, or by any form of memory operand."""
    mod, rm, sib = draw.randrange(4), draw.randrange(8), draw.randrange(256)
    code = bytes((0xFF, mod << 6 | draw.choice((2, 4)) << 3 | rm))
    scaled = mod < 3 and rm == 4
    if scaled:
        code += bytes((sib,))
    if mod == 2 or (mod == 0 and (rm == 5 or (scaled and sib & 7 == 5))):
        return code + little(draw.randint(-NEAR, FAR), 4)
    return code + (little(draw.randint(-128, 127), 1) if mod == 1 else b"")


ENCODINGS = {
    "jcc": lambda draw: bytes((0x70 | draw.randrange(16), draw.randrange(256))),
    "near jcc": lambda draw: bytes((0x0F, 0x80 | draw.randrange(16))) + little(draw.randint(-NEAR, NEAR), 4),
    "loop": lambda draw: draw.choice((b"", b"\x67")) + bytes((draw.randrange(0xE0, 0xE4), draw.randrange(256))),
    "jmp": lambda draw: bytes((0xEB, draw.randrange(256))),
    "near": lambda draw: bytes((draw.choice((0xE8, 0xE9)),)) + little(draw.randint(-NEAR, NEAR), 4),
    "indirect": lambda draw: draw.choice((b"", b"", FS, GS)) + indirect(draw),
    "ret": lambda draw: draw.choice((b"\xc3", b"\xf3\xc3", b"\xc2" + little(draw.randint(0, LARGEST_POP), 2))),
    "other": lambda draw: draw.choice((b"\x55", b"\x90")),
}


def register(draw):
    return draw.choice((draw.randrange(FAR), draw.randrange(FAR), -draw.randint(1, NEAR), 0, 1, 1 << 16, 1 << 32))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["x86_64", "i386"])
def test_a_plan_does_what_a_cpu_does(name):
    isa, cpu, draw = ISAS[name], RealMachine(ISAS[name]), random.Random(name)  # noqa: S311  the same cases every time
    cpu.store(0, MEMORY_SIZE, int.from_bytes(FILLING * (MEMORY_SIZE // 8), "little"))
    compared = dict.fromkeys(ENCODINGS, 0)
    for _ in range(CASES):
        kind = draw.choice(tuple(ENCODINGS))
        code = ENCODINGS[kind](draw)
        found = PORTS[name].treat(Code(code.ljust(16, b"\x90"), CODE, b""), Fidelity.EXACT)
        before = {one: register(draw) & isa.address_mask for one in register_names(isa)}
        before |= {isa.registers.sp: draw.randrange(CODE + 0x1_0000, FAR), isa.registers.pc: CODE}
        others = {isa.traps.flags: 2 | sum(draw.randrange(2) << bit for bit in FLAGS)}
        # Unicorn sets no base of a segment in 32-bit mode.
        others |= {base: draw.randrange(FAR) if name == "x86_64" else 0 for base in ("fs_base", "gs_base")}
        if not isinstance(found, Emulated):
            assert name == "i386"
            assert code[0] == 0x67
            continue
        assert found.length == len(code)
        machine = Machine(isa, others)
        for one, value in before.items():
            machine.words[isa.registers.slots[one]] = value
        try:
            after = machine.run(found.plan)
        except OutsideError:
            continue
        written = machine.written
        if after[isa.registers.pc] >= MEMORY_SIZE - 16:
            continue
        for one, value in (before | others).items():
            if name == "x86_64" or one not in {"fs_base", "gs_base"}:
                cpu.write_register(one, value)
        cpu.run(code)
        assert {one: cpu.read_register(one) for one in before} == after, code.hex()
        assert {at: cpu.load(at, 1) for at in written} == written, code.hex()
        for at in (*written, *range(CODE, CODE + len(code))):
            cpu.store(at, 1, FILLING[at & 7])
        compared[kind] += 1
    assert min(compared.values()) > CASES // len(ENCODINGS) // 3, compared
