"""DTrace's own probes of Linux in machine code: whether an event happens, and its arguments.

The function `happens(tracepoint, core)` is a step of a hit (`emu.engine.hits.hit_steps.Call`),
before the one that fires the probe, which it leaves out if the event does not happen.  The values
are those of `providers.linux_kernel.values`.
"""

from __future__ import annotations

from typing import Final

from emu.engine.hits.firing_code import GO_ON, SKIP
from emu.engine.hits.hit_steps import ARGUMENTS, Argument, Call, Fire, HitStep, InMemory, Register
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.values import Word
from emu.support.words import WORD_MASK
from providers.linux_kernel.events import Event
from providers.linux_kernel.registrations import Hit
from providers.linux_kernel.values import (
    AsInt,
    Choice,
    Constant,
    Current,
    Field,
    Masked,
    Negated,
    Same,
    Value,
    Within,
)

# The words of an event, by the places from which its step reads them.
_ARGUMENTS: Final = tuple(f"%argument {number} of an event" for number in range(ARGUMENTS))
_BASE: Final = "%base {} of an event"
_WORD: Final = 8
_INT_BITS: Final = 32


class NativeEvent:
    """One event's function, linked for one kernel.

    `passed` is what the place of the probe passes; `mark` is the register with the address of the
    tracepoint that is hit.
    """

    def __init__(self, guest: LinuxKernelGuest, event: Event, passed: tuple[Argument, ...], mark: str) -> None:
        self._shown = len(event.shown)
        code = _Code(guest, passed)
        code.write(event, mark)
        tracepoints = guest.engine.tracepoints
        self._blocks = []
        symbols = {
            "env": guest.engine.cpu.env,
            "argument": tracepoints.argument,
            **{f"shown{number}": tracepoints.temporary(name) for number, name in enumerate(_ARGUMENTS)},
            **{f"base{number}": tracepoints.temporary(_BASE.format(number)) for number in range(code.bases)},
        }
        for number, argument in enumerate(code.read):
            block = Firing()
            tracepoints.locate(block, (argument,))
            self._blocks.append(block)
            symbols[f"read{number}"] = block.address
        self._linked = Linked(code.module.compiled("event"), symbols)

    def steps(self, runs: int, hit: Hit | None) -> tuple[HitStep, ...]:
        """Return the steps of a hit of a tracepoint; None: it is a place in a function."""
        fire = Fire(runs, tuple(map(Register, _ARGUMENTS[: self._shown])))
        happens = Call(self._linked.address("happens"), 0 if hit is None else hit.tracepoint, asks=False)
        return happens, (fire if hit is None else hit.fire(fire))


class _Code:
    """Writes the function into `module`; `read` are the locations that it reads."""

    def __init__(self, guest: LinuxKernelGuest, passed: tuple[Argument, ...]) -> None:
        self.module = Module()
        self.read: list[Argument] = []
        self.bases = 0
        """The number of addresses of structures."""
        self._guest = guest
        self._passed = passed

    def write(self, event: Event, mark: str) -> None:
        """Write `happens`."""
        f = self.module.function("happens", 2)
        tracepoint, _core = f.parameters
        if mark:
            hit = f.load(self.module.symbol("env"), _WORD * self._guest.isa.registers.slots[mark])
            f.ret_if(f.ne(hit, tracepoint), SKIP)
        if event.holds is not None:
            f.ret_if(f.eq(self._value(f, event.holds), 0), SKIP)
        for number, shown in enumerate(event.shown):
            f.store(self.module.symbol(f"shown{number}"), self._value(f, shown.value))
        f.ret(GO_ON)

    def _value(self, f: Function, value: Value) -> Word:
        """Write what computes a value, as `value_of` does."""
        match value:
            case int():
                return self._location(f, self._passed[value])
            case Constant(number):
                return f.word(number & WORD_MASK)
            case Current():
                tasks = self._guest.tasks
                variable = tasks.variable
                return self._location(f, InMemory("", variable, _WORD) if variable else Register(tasks.abi.current))
            case Field(base, structure, member, size):
                number, self.bases = self.bases, self.bases + 1
                f.store(self.module.symbol(f"base{number}"), self._value(f, base))
                offset = self._guest.facts.btf.offset(structure, member)
                return self._location(f, InMemory(_BASE.format(number), offset, size))
            case AsInt(one):
                return f.ashr(f.shl(self._value(f, one), _INT_BITS), _INT_BITS)
            case Masked(one, mask):
                return f.and_(self._value(f, one), mask)
            case Negated(one):
                return f.sub(0, self._value(f, one))
            case Within(one, first, last):
                return f.flag(f.ule(f.sub(self._value(f, one), first & WORD_MASK), last - first))
            case Same(left, right):
                return f.flag(f.eq(self._value(f, left), self._value(f, right)))
            case Choice(test, taken, other):
                return f.select(f.ne(self._value(f, test), 0), self._value(f, taken), self._value(f, other))

    def _location(self, f: Function, argument: Argument) -> Word:
        """Read a register, or memory: 0 if none is mapped there."""
        self.read.append(argument)
        block = self.module.symbol(f"read{len(self.read) - 1}")
        return f.call(self.module.symbol("argument"), block, 0)
