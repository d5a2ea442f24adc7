"""Instructions of the assembly bench at work: the original on one CPU, what replaces it on others.

Each provider that takes an instruction has a CPU of its own, on which the instruction is patched,
and which starts in the same state.  After each instruction registers, flags, vector registers and
memory are compared with those of the original.

Every address is valid there: the memory is 32 KiB of zeros, which repeat through the address space.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.modules import Module
from emu.isa.base import Isa
from emu.support.did_you_mean import counted, did_you_mean
from trapline.lab.check.cpu.aliased import AliasedSpace
from trapline.lab.check.cpu.cpu import Ending, Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import KINDS, State, general_registers
from trapline.lab.check.prober.kinst import KinstProber
from trapline.lab.check.prober.probers import FbtProber, NoProbe, PidProber, Prober, UprobeProber
from trapline.lab.displace.bench import DisplacedCode, DisplaceError, isa_of
from trapline.lab.displace.decisions import LONGEST, ProviderDecision
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell

# No code is below it; so code that is assembled for lower addresses runs so much higher.
LOWEST: Final = 0x10000
# Where the stack pointer is, unless it is said, by the bytes of a word; and how far scratch space is.
_STACK: Final = {8: 0x2A00_0000_4000, 4: 0x4000_4000}
_NEAR: Final = 64 << 20
_NAME: Final = "snippet"
_PERIOD: Final = KINDS * PAGE
# How far from a register's value an address may be that is named by it.
_REACH: Final = 1 << 12
MOST: Final = 1_000
# The bits of the flags that are always set.
_RESERVED: Final = {"rflags": 2, "eflags": 2}


class _OpenSpace(AliasedSpace):
    """An address space in which every page may be written."""

    def look_up(self, address: int, access: Access) -> tuple[int, Access] | None:
        """Serve a miss of the TLB."""
        if self.mapped(address) is not None:
            return super().look_up(address, access)
        rights = Access.READ | Access.WRITE
        return (self.memory_at + address % _PERIOD, rights) if access in rights else None

    def reach(self, address: int, access: Access) -> int | None:
        """Return the physical address for the host's own access."""
        if self.mapped(address) is not None:
            return super().reach(address, access)
        return self.memory_at + address % _PERIOD if access in Access.READ | Access.WRITE else None


@dataclass(frozen=True, slots=True)
class Change:
    """One register, or stretch of memory, that an instruction has changed."""

    what: str
    """A register's name, or [address]."""
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Probed:
    """The differences of a run in which the instruction was patched."""

    provider: str
    how: str
    """How the instruction was displaced; the reason if it was not."""
    probed: bool
    """Whether it was patched: else this provider's CPU has executed the original."""
    differences: tuple[str, ...]
    """The differences from the original's CPU."""
    changes: tuple[Change, ...] = ()
    """What it has changed, as of the original."""


@dataclass(frozen=True, slots=True)
class Executed:
    """One instruction that was executed."""

    address: int
    """The address for which the code was assembled."""
    code: str
    text: str
    registers: Mapping[str, int]
    """Before it: the general registers, and the flags."""
    changes: tuple[Change, ...]
    """The changed registers and words; the pc only where another instruction than the next follows."""
    end: str
    """How it ended, if not with the next instruction: a jump, a fault, a system call."""
    probed: tuple[Probed, ...]

    @property
    def same(self) -> bool:
        """Return whether it did the same under every provider."""
        return not any(one.differences for one in self.probed)


@dataclass(frozen=True, slots=True)
class Run:
    """The instructions that were executed, in their order."""

    isa: str
    bias: int
    """The distance of the code from the address for which it was assembled."""
    executed: tuple[Executed, ...]
    stopped: str
    """Why it ended."""

    @property
    def same(self) -> bool:
        """Return whether all was the same under every provider."""
        return all(one.same for one in self.executed)

    def _repr_html_(self) -> str:
        rows = []
        for one in self.executed:
            changes = tuple(f"{change.what}: {change.before:#x} → {change.after:#x}" for change in one.changes)
            probed = (
                f"{each.provider}: {'; '.join(each.differences) or 'the same'} ({each.how})" for each in one.probed
            )
            ends = (one.end,) if one.end else ()
            rows.append((cell(f"{one.address:#x}"), cell(one.text), Cell(changes + ends), Cell(tuple(probed))))
        return html_table(("address", "instruction", "changes", "patched"), rows, f"it stopped: {self.stopped}")


class _BenchCpu(TrialCpu):
    """A CPU with the code, and memory of zeros."""

    def __init__(self, isa: Isa, code: Stretch, *, stepping: bool) -> None:
        super().__init__(isa, [code], stepping=stepping, space=_OpenSpace)
        ctypes.memset(self.pristine_at, 0, self.memory_size)
        self.clean()

    def content(self) -> bytes:
        """Return the memory."""
        return ctypes.string_at(self.memory, self.memory_size)

    def values(self) -> dict[str, int]:
        """Return the general registers, the flags and the pc, by name."""
        names = (*general_registers(self.isa), *filter(None, (self.isa.traps.flags,)), self.isa.registers.pc)
        return {name: self.engine.read_register(name) & self.isa.address_mask for name in names}

    def store(self, address: int, data: bytes) -> None:
        """Write memory."""
        for place, byte in enumerate(data):
            ctypes.memset(self.memory + (address + place) % _PERIOD, byte, 1)


# As assemblers call them.
_OTHER_NAMES: Final = {"x29": "fp", "x30": "lr", "fp": "s0"}


def setting(isa: Isa, text: str) -> tuple[str, int]:
    """Return the register, or "[address]", and its value, of `rdi=5` or `[0x100]=7`.

    Raises `DisplaceError`.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    try:
        number = int(value, 0)
    except ValueError:
        raise DisplaceError(f"'{text}' is not REGISTER=NUMBER or [ADDRESS]=NUMBER") from None
    if not equals or not -(isa.address_mask >> 1) - 1 <= number <= isa.address_mask:
        raise DisplaceError(f"'{text}': the number does not fit {8 * isa.word} bits")
    if name.startswith("[") and name.endswith("]"):
        try:
            return f"[{int(name[1:-1], 0) & isa.address_mask:#x}]", number & isa.address_mask
        except ValueError:
            raise DisplaceError(f"'{text}': '{name[1:-1]}' is not an address") from None
    name = _OTHER_NAMES.get(name, name) if name not in isa.registers.by_name else name
    known = {*general_registers(isa), *filter(None, (isa.traps.flags,))}
    if name not in known:
        raise DisplaceError(f"'{name}' is not a register of {isa.title}{did_you_mean(name, known)}")
    return name, number & isa.address_mask


def run(code: DisplacedCode, isa: str, registers: Mapping[str, int], *, count: int = 100) -> Run:
    """Execute a snippet from its start, at most `count` instructions, under each of its providers.

    `registers` are by name, and words of memory as "[0x100]"; what is not named is 0, but for the
    stack pointer.  Raises `DisplaceError`.
    """
    machine = isa_of(isa)
    if not code:
        raise DisplaceError("there are no instructions")
    body = bytes.fromhex("".join(one.code for one in code))
    bias = LOWEST if code[0].address < LOWEST else 0
    return _Bench(machine, code, Stretch(code[0].address + bias, body), bias).run(registers, count)


class _Bench:
    """The CPUs of one run."""

    def __init__(self, isa: Isa, code: DisplacedCode, stretch: Stretch, bias: int) -> None:
        self._isa = isa
        self._stretch = stretch
        self._bias = bias
        self._code = {one.address + bias: one for one in code}
        self._plain = _BenchCpu(isa, stretch, stepping=True)
        self._patched: dict[str, tuple[_BenchCpu, Prober]] = {}
        for provider in (decision.provider for decision in code[0].decisions):
            if any(_takes(one.decision(provider)) for one in code):
                cpu = _BenchCpu(isa, stretch, stepping=False)
                self._patched[provider] = cpu, self._prober(provider, cpu)

    def _prober(self, provider: str, cpu: _BenchCpu) -> Prober:
        near = self._stretch.address // PAGE * PAGE + _NEAR
        if provider == "pid":
            return PidProber(cpu, near, Rules())
        if provider == "uprobe":
            return UprobeProber(cpu, near, Rules())
        start, data = self._stretch
        symbol = Symbol(_NAME, start, len(data), SymbolType.FUNC, Binding.GLOBAL, 1)

        def read(address: int, size: int) -> bytes:
            return data[address - start :][:size].ljust(size, b"\0")

        module = Module("code", (symbol,), read)
        return FbtProber(cpu, module, Rules()) if provider == "fbt" else KinstProber(cpu, module, _NAME, near)

    def run(self, settings: Mapping[str, int], count: int) -> Run:
        """Execute from the start."""
        sp = self._isa.registers.sp
        registers = {name: value for name, value in settings.items() if not name.startswith("[")}
        flags = registers.pop(self._isa.traps.flags, 0) if self._isa.traps.flags else 0
        before = dict.fromkeys(general_registers(self._isa), 0) | {sp: _STACK[self._isa.word]} | registers
        state = State("asked for", before, flags | _RESERVED.get(self._isa.traps.flags, 0))
        for cpu in self._cpus():
            cpu.load(state)
            cpu.clean()
            for name, value in settings.items():
                if name.startswith("["):
                    cpu.store(int(name[1:-1], 16), value.to_bytes(self._isa.word, "little"))
        executed: list[Executed] = []
        at, stopped = self._stretch.address, ""
        while not stopped:
            one = self._code.get(at)
            if one is None:
                stopped = self._why_left(at)
            elif len(executed) == count:
                stopped = f"after {counted(count, 'instruction')}"
            else:
                found, ending = self._step(at)
                executed.append(found)
                at = ending.pc
                stopped = found.end if ending.fault is not None or ending.system_call else ""
        return Run(self._isa.name, self._bias, tuple(executed), stopped)

    def _why_left(self, at: int) -> str:
        end = self._stretch.address + len(self._stretch.data)
        return "at the end of the code" if at == end else f"the code was left for {at:#x}"

    def _cpus(self) -> Iterator[_BenchCpu]:
        yield self._plain
        yield from (cpu for cpu, _ in self._patched.values())

    def _step(self, at: int) -> tuple[Executed, Ending]:
        one = self._code[at]
        plain = self._plain
        plain.engine.pc = at
        before, memory = plain.values(), plain.content()
        repeats = self._isa.repetition(bytes.fromhex(one.code)) is not None
        ending = plain.execute(at, repeats=repeats)
        changes = tuple(self._changes(plain, before, memory, at + one.length))
        start = self._stretch.address
        site = CheckSite(at, self._stretch.data[at - start : at - start + LONGEST], _NAME, start)
        probed = tuple(
            self._probed(site, one.decision(name), cpu, prober, ending, repeats)
            for name, (cpu, prober) in self._patched.items()
        )
        end = "" if ending.fault is None and not ending.system_call and ending.pc == at + one.length else str(ending)
        return Executed(one.address, one.code, one.text, before, changes, end, probed), ending

    def _changes(self, cpu: _BenchCpu, before: Mapping[str, int], memory: bytes, after: int) -> Iterator[Change]:
        now = cpu.values()
        for name, value in before.items():
            if now[name] != value and not (name == self._isa.registers.pc and now[name] == after):
                yield Change(name, value, now[name])
        content, word = cpu.content(), self._isa.word
        for place in range(0, len(content), word):
            old, new = memory[place : place + word], content[place : place + word]
            if old != new:
                address = self._near(place, (*before.values(), *now.values()))
                yield Change(f"[{address:#x}]", int.from_bytes(old, "little"), int.from_bytes(new, "little"))

    def _near(self, place: int, values: tuple[int, ...]) -> int:
        """Return the address of a place in memory that is nearest to a register's value."""
        found = []
        for value in values:
            address = value - value % _PERIOD + place
            found += [(abs(one - value), one) for one in (address - _PERIOD, address, address + _PERIOD)]
        distance, address = min(found)
        return address & self._isa.address_mask if distance <= _REACH else place

    def _probed(
        self,
        site: CheckSite,
        decision: ProviderDecision,
        cpu: _BenchCpu,
        prober: Prober,
        original: Ending,
        repeats: bool,
    ) -> Probed:
        looked = prober.look(site) if _takes(decision) else NoProbe(decision.why)
        taken = not isinstance(looked, NoProbe)
        place: AbstractContextManager[None] = (
            nullcontext() if isinstance(looked, NoProbe) else looked.ways[0].in_place()
        )
        cpu.stepping = not taken
        cpu.engine.pc = site.address
        before, memory = cpu.values(), cpu.content()
        with place:
            ending = cpu.execute(site.address, repeats=repeats)
        cpu.stepping = False
        after = site.address + self._code[site.address].length
        changes = tuple(self._changes(cpu, before, memory, after))
        how = looked.rule if isinstance(looked, NoProbe) else decision.what
        return Probed(decision.provider, how, taken, tuple(self._differences(cpu, original, ending)), changes)

    def _differences(self, cpu: _BenchCpu, original: Ending, ending: Ending) -> Iterator[str]:
        if original != ending:
            yield f"end: {original}; patched: {ending}"
        ours = self._plain.values()
        for name, value in cpu.values().items():
            clobbered = original.system_call and name in cpu.clobbered_by_calls
            if value != ours[name] and name != self._isa.registers.pc and not clobbered:
                yield f"{name}: {ours[name]:#x}; patched: {value:#x}"
        if self._plain.vectors() != cpu.vectors():
            yield "the vector registers"
        if self._plain.content() != cpu.content():
            yield "the memory"


def _takes(decision: ProviderDecision) -> bool:
    """Return whether the provider patches the instruction."""
    return bool(decision.patch)
