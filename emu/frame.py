"""The interrupted context of a trap, whichever way the trap was taken.

`LiveFrame` looks at the registers of the stopped CPU (host trap path); `SavedFrame` at the trap frame that the guest
kernel's vector saved in memory (guest trap path).  A provider cannot tell one from the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Protocol

from emu.engine.engine import Engine

_WORD = 8


class Frame(Protocol):
    """What a provider may read of the interrupted context; values are unsigned 64-bit."""

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one this kind of frame does not hold."""
        ...

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments, as on entry to a function."""
        ...

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5 on function entry, as dtrace_getarg does; 0 where FreeBSD does not look."""
        ...

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        ...

    def stack_word(self, index: int) -> int:
        """Return the 64-bit word at sp + 8 * index.  Raises `emu.guest.base.BadAddressError`."""
        ...


def _late_argument(frame: Frame, engine: Engine, index: int) -> int:
    """Return argument 5 and up: FreeBSD sys/cddl/dev/dtrace/amd64/dtrace_isa.c dtrace_getarg.

    Its AArch64 and RISC-V twins are not written: they say so on the console and give 0.
    """
    isa = engine.isa
    if isa.registers.link is not None:
        return 0
    if index < len(isa.calling.arguments):
        return frame.register(isa.calling.arguments[index])
    return frame.stack_word(index - len(isa.calling.arguments) + isa.calling.stack_arguments // _WORD)


class LiveFrame:
    """The context of a stopped CPU: its registers as they are, but for the pc, which is `pc_after` less.

    With the ISA's `Traps.pc_after` the pc of a breakpoint is that of the breakpoint itself, on x86 too.  With `trapped`
    it is the frame that a kernel's vector would have saved: it holds the same registers, and what the CPU pushes.
    """

    def __init__(self, engine: Engine, pc_after: int = 0, *, trapped: bool = False) -> None:
        self._engine = engine
        traps = engine.isa.traps
        self._pushed = dict(traps.pushed if trapped else ())
        self._held = {*traps.frame, engine.isa.registers.zero} if trapped else None
        self._pc = engine.isa.registers.pc
        self._pc_after = pc_after
        self._words = engine.words
        slots = engine.isa.registers.slots
        # Every firing asks for one of these: no function of Python's in between.
        get_arguments = itemgetter(*(slots[name] for name in engine.isa.calling.arguments[:5]))
        get_results = itemgetter(*(slots[name] for name in engine.isa.calling.results))
        self.arguments: Callable[[], tuple[int, int, int, int, int]] = partial(get_arguments, engine.words)
        """Returns the first five integer arguments."""
        self.results: Callable[[], tuple[int, int]] = partial(get_results, engine.words)
        """Returns the two result registers."""
        self._sp = slots[engine.isa.registers.sp]
        self._load = engine.load

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one the frame does not hold."""
        if name in self._pushed:
            return self._pushed[name]
        if self._held is not None and name not in self._held:
            raise KeyError(name)
        value = self._engine.read_register(name)
        return value - self._pc_after if name == self._pc else value

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5."""
        return _late_argument(self, self._engine, index)

    def stack_word(self, index: int) -> int:
        """Return the 64-bit word at sp + 8 * index."""
        return self._load(self._words[self._sp] + _WORD * index, _WORD)


class SavedFrame:
    """A trap frame in guest memory, laid out as the ISA's `Traps.frame` says; `pc_after` as in `LiveFrame`."""

    def __init__(self, engine: Engine, address: int, pc_after: int = 0) -> None:
        self.address = address
        self._engine = engine
        self._pc_after = pc_after

    def register(self, name: str) -> int:
        """Return a register by name.  Raises KeyError for one the frame does not hold."""
        if name == self._engine.isa.registers.zero:
            return 0
        try:
            index = self._engine.isa.traps.frame.index(name)
        except ValueError:
            raise KeyError(name) from None
        value = self._engine.load(self.address + _WORD * index, _WORD)
        return value - self._pc_after if name == self._engine.isa.registers.pc else value

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments."""
        a, b, c, d, e = (self.register(name) for name in self._engine.isa.calling.arguments[:5])
        return a, b, c, d, e

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5."""
        return _late_argument(self, self._engine, index)

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        first, second = (self.register(name) for name in self._engine.isa.calling.results)
        return first, second

    def stack_word(self, index: int) -> int:
        """Return the 64-bit word at the interrupted sp + 8 * index."""
        return self._engine.load(self.register(self._engine.isa.traps.frame_sp) + _WORD * index, _WORD)
