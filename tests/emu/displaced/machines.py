"""Two machines with one face: the first carries out plans, the other, Unicorn, the instructions themselves."""

from __future__ import annotations

import unicorn

from emu.displaced.plans import Plan
from emu.isa.base import Isa
from emu.probe.execute_plan import interpret
from emu.support.words import BadAddressError
from tests.emu.displaced.ins import CODE

MEMORY_SIZE = 0x0500_0000
_SLOTS = 256


def register_names(isa: Isa) -> list[str]:
    """The registers a program uses, by name."""
    names = set(isa.registers.dtrace) & set(isa.registers.slots)
    return sorted(names - {isa.registers.zero})


class PlanMachine:
    """A CPU with a sparse memory, for `interpret`; every word is mapped by default."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.words = memoryview(bytearray(8 * _SLOTS)).cast("Q")
        self.memory: dict[int, int] = {}
        self.unmapped = range(0)

    def load(self, address: int, size: int) -> int:
        return int.from_bytes((self._byte(address + place) for place in range(size)), "little")

    def store(self, address: int, size: int, value: int) -> None:
        for place in range(size):
            self._byte(address + place)
        for place in range(size):
            self.memory[address + place & (1 << 64) - 1] = value >> 8 * place & 0xFF

    def _byte(self, address: int) -> int:
        address &= (1 << 64) - 1
        if address in self.unmapped:
            raise BadAddressError(address)
        return self.memory.get(address, 0)

    def read_register(self, name: str) -> int:
        return self.words[self.isa.registers.slots[name]]

    def write_register(self, name: str, value: int) -> None:
        self.words[self.isa.registers.slots[name]] = value

    def run(self, plan: Plan) -> None:
        interpret(plan, self.isa, self, self.words[self.isa.registers.slots[self.isa.registers.pc]])


class RealMachine:
    """Unicorn, one instruction at a time."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self._uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
        self._uc.mem_map(0, MEMORY_SIZE)

    def load(self, address: int, size: int) -> int:
        return int.from_bytes(self._uc.mem_read(address, size), "little")

    def store(self, address: int, size: int, value: int) -> None:
        self._uc.mem_write(address, value.to_bytes(size, "little"))

    def read_register(self, name: str) -> int:
        return self._uc.reg_read(self.isa.unicorn.ids[name])

    def write_register(self, name: str, value: int) -> None:
        self._uc.reg_write(self.isa.unicorn.ids[name], value)

    def run(self, code: bytes) -> None:
        self._uc.mem_write(CODE, code)
        self._uc.ctl_remove_cache(CODE, CODE + len(code))
        self._uc.emu_start(CODE, MEMORY_SIZE - 4, count=1)
