"""The instructions that a hit without a trap adds to a call of the kernel.

The kernel makes the same call in two runs, once with the probe enabled and once with another one of
its mechanism.  Both calls are recorded, instruction by instruction; those that only the first has
are the hit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from emu.engine.engine import Engine
from emu.guest.kernel.guest import KernelGuest
from trapline.cost.rows import LINE, PAGE, Anatomy, Part

# The name of the kernel's function that fires probes, which the emulator implements.
_FIRES: Final = "dtrace_probe"
# D's instructions for the key of `@[arg0]`, the clause of every recording: a load, and the return.
_DIF: Final = 2
# Calls after which each one is the same: in the first one the kernel runs other processes.
_WARM: Final = 3
# Bytes that hold the longest instruction.
_LONGEST: Final = 16


@dataclass(slots=True)
class Executed:
    """An executed instruction."""

    pc: int
    memory: list[range] = field(default_factory=list)
    """The physical memory of its code and of its accesses: the code first."""


class CallRecorder:
    """Records one call of a function, after some calls of another one (`after`)."""

    def __init__(self, guest: KernelGuest, function: str, after: str) -> None:
        self.executed: list[Executed] = []
        self._engine: Engine = guest.engine
        self._isa = guest.isa
        self._back: int | None = None
        self._running = False
        self._calls = 0
        self._address = guest.image.symbol(function).value
        self._on_code(guest.image.symbol(after).value, self._warm)

    def _warm(self) -> None:
        self._calls += 1
        if self._calls == _WARM:
            self._on_code(self._address, self._begin)

    def _begin(self) -> None:
        if self._running or self.executed:
            return
        link = self._isa.registers.link
        self._back = self._read(link) if link else self._engine.load(self._read(self._isa.registers.sp), self._isa.word)
        self._running = True
        self._engine.running.watch(self._step, self._accessed)
        self._engine.running.leave()

    def _step(self) -> bool:
        pc = self._engine.pc
        if pc == self._back:
            self._running = False
            return False
        code = self._engine.read(pc, _LONGEST)
        self.executed.append(Executed(pc, [self._physical(pc, self._isa.instruction_length(code))]))
        return True

    def _accessed(self, write: bool, physical: int, size: int, value: int) -> None:
        del write, value
        if self._running and self.executed:
            self.executed[-1].memory.append(range(physical, physical + size))

    def _physical(self, address: int, size: int) -> range:
        physical = self._engine.memory.translate(address)
        assert physical is not None
        return range(physical, physical + size)

    def _read(self, register: str) -> int:
        return self._engine.read_register(register)

    def _on_code(self, address: int, function: Callable[[], None]) -> None:
        self._engine.code.on_code(address, function)
        # It may have been translated without the hook.
        self._engine.write_code(address, self._engine.read(address, 1))


def added(fired: Sequence[Executed], other: Sequence[Executed]) -> list[int]:
    """Return the indices in the first call of the instructions that the second one does not have."""
    matcher = SequenceMatcher(None, [one.pc for one in other], [one.pc for one in fired], autojunk=False)
    return [
        index
        for what, _, _, start, end in matcher.get_opcodes()
        if what in {"insert", "replace"}
        for index in range(start, end)
    ]


def anatomy(guest: KernelGuest, fired: Sequence[Executed], other: Sequence[Executed]) -> Anatomy:
    """Return the parts of the hit, and the memory that it accesses.

    The instructions of the function that calls dtrace_probe() load its arguments.
    """
    indices = added(fired, other)
    gate = guest.image.symbol(_FIRES).value
    called = next(index for index in indices if fired[index].pc == gate)
    own = guest.locate(fired[called - 1].pc)
    parts: Counter[Part] = Counter()
    for index in indices:
        located = guest.locate(fired[index].pc)
        inside = located is not None and own is not None and located.symbol == own.symbol
        before = Part.ARGUMENTS if inside else Part.DISPATCH
        parts[Part.RETURN if index >= called else before] += 1
    site = fired[indices[0] - 1].memory[0]
    accesses = sum(len(fired[index].memory) - 1 for index in indices)
    touched = [part for index in indices for part in fired[index].memory]
    lines, pages = (len({*_blocks(touched, size)} - {*_blocks([site], size)}) for size in (LINE, PAGE))
    return Anatomy({part: parts[part] for part in Part}, _DIF, accesses, lines, pages)


def _blocks(spans: Sequence[range], size: int) -> Iterator[int]:
    for span in spans:
        yield from range(span.start // size, (span.stop - 1) // size + 1)
