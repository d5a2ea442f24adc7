"""The registers of a program that the kernel has interrupted, as providers read them.

What is written changes only this copy: providers here watch programs, and the kernel executes the
displaced instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from emu.displaced.plans import Plan
from emu.isa.base import Isa
from emu.probe.execute_plan import interpret
from emu.support.words import BadAddressError

_FIVE = 5


class ProgramCpu:
    """A copy of the registers, and the memory of the current process.

    `load(address, size)` reads bytes, or raises `BadAddressError`.
    """

    def __init__(self, isa: Isa, registers: Mapping[str, int], load: Callable[[int, int], bytes]) -> None:
        self.isa = isa
        self._load = load
        self._registers = dict(registers)
        slots = isa.registers.slots
        self.words = [0] * (max(slots.values()) + 1)
        """The registers by their slots."""
        for name, value in registers.items():
            if name in slots:
                self.words[slots[name]] = value

    def copy(self) -> ProgramCpu:
        """Return another copy of the registers."""
        other = ProgramCpu(self.isa, self._registers, self._load)
        other.words[:] = self.words
        return other

    @property
    def pc(self) -> int:
        """The program counter."""
        return self.words[self.isa.registers.slots[self.isa.registers.pc]]

    @pc.setter
    def pc(self, value: int) -> None:
        self.words[self.isa.registers.slots[self.isa.registers.pc]] = value

    def read_register(self, name: str) -> int:
        """Return a register.  Raises KeyError for one that is not kept."""
        slots = self.isa.registers.slots
        if name in slots:
            return self.words[slots[name]]
        return self._registers["pstate" if name == "nzcv" else name]

    def write_register(self, name: str, value: int) -> None:
        """Set a register of the copy."""
        self.words[self.isa.registers.slots[name]] = value

    def load(self, address: int, size: int) -> int:
        """Return an integer in memory.  Raises `BadAddressError`."""
        return int.from_bytes(self._load(address, size), "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Do nothing: the kernel executes the instruction."""

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Do nothing: the kernel executes the instruction."""

    def discount(self, instructions: int, executed: int = 0) -> None:
        """Do nothing: the kernel's work for a probe takes time."""


class ProgramFrame:
    """The registers of a program as a trap frame.  Implements `emu.displaced.frame.Frame`."""

    def __init__(self, cpu: ProgramCpu) -> None:
        self._held = cpu

    @property
    def _cpu(self) -> ProgramCpu:
        return self._held

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one that is not kept."""
        return self._cpu.read_register(name)

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments."""
        first, second, third, fourth, fifth = map(self.register, self._cpu.isa.calling.arguments[:_FIVE])
        return first, second, third, fourth, fifth

    def argument(self, index: int) -> int:
        """Return an argument after the fifth."""
        names = self._cpu.isa.calling.arguments
        if index < len(names):
            return self.register(names[index])
        return self.stack_word(index - len(names) + (self._cpu.isa.registers.link is None))

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        first, second = map(self.register, self._cpu.isa.calling.results[:2])
        return first, second

    def stack_word(self, index: int) -> int:
        """Return the word at sp + `index` words.  Raises `BadAddressError`."""
        isa = self._cpu.isa
        return self._cpu.load(self.register(isa.registers.sp) + isa.word * index, isa.word)

    def stack_words(self, first: int) -> tuple[int, int, int, int, int]:
        """Return five words of the stack, 0 for those that cannot be read."""
        one, two, three, four, five = map(self._word_or_0, range(first, first + _FIVE))
        return one, two, three, four, five

    def _word_or_0(self, index: int) -> int:
        try:
            return self.stack_word(index)
        except BadAddressError:
            return 0

    def go_to(self, address: int, stub_adds: int = 0) -> None:
        """Set the pc of the copy."""
        self._cpu.pc = address - stub_adds

    def execute(self, plan: Plan, address: int, stub_adds: int = 0, scratch: int = 0) -> bool:
        """Carry a plan out on the copy."""
        del stub_adds, scratch
        interpret(plan, self._cpu.isa, self._cpu, address)
        return False
