"""The CPU of the model: real instructions on a real engine, each from a stored state.

Executing an instruction is a function of the state and of the bytes that were fetched, so it is
done once for each pair: an exploration meets few pairs, and each many times.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.engine.memory.pages import PAGE
from emu.guest.modules import Module
from emu.isa.base import Isa
from trapline.lab.check.cpu.cpu import Ending, Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import KINDS, State, general_registers
from trapline.lab.check.prober.kinst import KinstProber
from trapline.lab.check.prober.probers import FbtProber, KernelCode, NoProbe, PidProber, Prober, UprobeProber
from trapline.lab.race.patch import PLACE, Kind, Patch, RaceError

# Size of a word in bytes -> the address in the middle of a page that may be read and written.
DATA: Final = {8: 0x0000_2A00_0000_2800, 4: 0x4000_2800}
_LONGEST: Final = 16
_NEAR: Final = 32 << 20


class Executed(NamedTuple):
    """The outcome of an instruction."""

    state: int
    """The number of the state after it."""
    pc: int
    fault: str
    """The description of its fault; "" if it did not fault."""


class _Stored(NamedTuple):
    registers: bytes
    flags: int
    memory: bytes


# Provider -> maker of its prober from a CPU, the patched function as a module, its name, and an address near it.
_PROBERS: Final[dict[str, Callable[[TrialCpu, Module, str, int], Prober]]] = {
    "fbt": lambda cpu, module, _function, _near: FbtProber(cpu, module, Rules()),
    "kinst": KinstProber,
    "pid": lambda cpu, _module, _function, near: PidProber(cpu, near, Rules()),
    "uprobe": lambda cpu, _module, _function, near: UprobeProber(cpu, near, Rules()),
}


class Processor:
    """One engine with a patch's code, and all states of the CPUs of the model."""

    def __init__(self, patch: Patch) -> None:
        self.patch = patch
        self._states: dict[_Stored, int] = {}
        self._stored: list[_Stored] = []
        self._data = DATA[patch.isa.word] // PAGE % KINDS * PAGE
        self._known: dict[tuple[int, int, bytes], Executed] = {}
        self._handled: dict[int, Executed] = {}
        self._cpu = self._make(stepping=True)
        self._code = KernelCode(self._cpu.engine, self._cpu.space)
        self._patched: TrialCpu | None = None
        self._cpu.clean()
        self._cpu.load(State("a call", self._registers(patch.isa)))
        self.initial = self._store(self._cpu)
        """The number of the state in which each CPU begins."""

    def _make(self, *, stepping: bool) -> TrialCpu:
        patch = self.patch
        return TrialCpu(patch.isa, [Stretch(patch.address, patch.code)], stepping=stepping)

    @staticmethod
    def _registers(isa: Isa) -> dict[str, int]:
        """Return registers whose values are valid addresses, all of them different."""
        data = DATA[isa.word]
        names = [name for name in general_registers(isa) if name != isa.registers.sp]
        return {isa.registers.sp: data} | {name: data + 0x100 + 16 * index for index, name in enumerate(names)}

    @property
    def executions(self) -> int:
        """The number of instructions that the engine has really executed."""
        return len(self._known) + len(self._handled)

    def execute(self, state: int, pc: int, code: bytes) -> Executed:
        """Return the outcome of the instruction that begins these bytes, at a pc."""
        key = (state, pc, code)
        if key not in self._known:
            self._known[key] = self._execute(state, pc, code)
        return self._known[key]

    def _execute(self, state: int, pc: int, code: bytes) -> Executed:
        before = self._code.read(pc, len(code))
        if before != code:
            self._code.write_code(pc, code)
        self._load(self._cpu, state)
        ending = self._cpu.execute(pc)
        after = self._store(self._cpu)
        if before != code:
            self._code.write_code(pc, before)
        return Executed(after, ending.pc, _fault(ending))

    def displaced(self, state: int) -> Executed:
        """Take the trap at the patch, and execute the displaced instruction as the provider does."""
        if state not in self._handled:
            cpu = self._patched = self._patched or self._probed()
            self._load(cpu, state)
            ending = cpu.execute(self.patch.site)
            self._handled[state] = Executed(self._store(cpu), ending.pc, _fault(ending))
        return self._handled[state]

    def _probed(self) -> TrialCpu:
        """Return a CPU with the provider's probe.  Raises `RaceError` if it is refused."""
        patch = self.patch
        assert patch.kind is Kind.TRAP
        cpu = self._make(stepping=False)
        size = patch.scanned or len(patch.code)
        symbol = Symbol(patch.function, patch.address, size, SymbolType.FUNC, Binding.GLOBAL, 1)
        module = Module("kernel", (symbol,), lambda at, size: patch.code[at - patch.address :][:size])
        prober = _PROBERS[patch.provider](cpu, module, patch.function, PLACE + _NEAR)
        code = patch.code[patch.offset : patch.offset + _LONGEST]
        treated = prober.look(CheckSite(patch.site, code, patch.function, patch.address))
        if isinstance(treated, NoProbe):
            raise RaceError(f"{patch.name}: no probe goes there: {treated.rule}")
        treated.ways[0].enter()
        shown = KernelCode(cpu.engine, cpu.space).read(patch.site, len(patch.new))
        assert shown == patch.new, f"{patch.provider} wrote {shown.hex()}, not {patch.new.hex()}"
        return cpu

    def _load(self, cpu: TrialCpu, state: int) -> None:
        stored = self._stored[state]
        cpu.load(State("stored", {}))
        (at, size), *_ = cpu.places
        ctypes.memmove(at, stored.registers, size)
        if cpu.isa.traps.flags:
            cpu.engine.write_register(cpu.isa.traps.flags, stored.flags)
        ctypes.memmove(cpu.memory, stored.memory, cpu.memory_size)

    def _store(self, cpu: TrialCpu) -> int:
        memory = ctypes.string_at(cpu.memory, cpu.memory_size)
        stored = _Stored(cpu.general(), cpu.flags(), memory)
        number = self._states.setdefault(stored, len(self._stored))
        if number == len(self._stored):
            self._stored.append(stored)
        return number

    def registers(self, state: int) -> dict[str, int]:
        """Return the registers of a state, with the flags."""
        found = {name: self.register(state, name) for name in general_registers(self.patch.isa)}
        flags = self.patch.isa.traps.flags
        return found | ({flags: self._stored[state].flags} if flags else {})

    def page(self, state: int) -> bytes:
        """Return the page of memory to which the registers point."""
        return self._stored[state].memory[self._data : self._data + PAGE]

    def resumed(self, state: int, registers: Mapping[str, int], page: bytes) -> int:
        """Return the number of the state with other registers, and another page of memory."""
        cpu = self._cpu
        self._load(cpu, state)
        for name, value in registers.items():
            if name != self.patch.isa.registers.pc:
                cpu.engine.write_register(name, value)
        ctypes.memmove(cpu.memory + self._data, page, PAGE)
        return self._store(cpu)

    def register(self, state: int, name: str) -> int:
        """Return a register of a state."""
        index = general_registers(self.patch.isa).index(name)
        return int.from_bytes(self._stored[state].registers[8 * index : 8 * index + 8], "little")


def _fault(ending: Ending) -> str:
    if ending.fault is not None:
        return f"signal {ending.fault[0]} at {ending.fault[2]:#x}"
    if ending.system_call:
        return "a system call"
    return "" if ending.traps == 1 else str(ending)
