"""Tracepoints whose hits machine code serves: a hash table by address, in plain memory.

A hit that is not in the table goes to Python, which serves it and then puts into the table what it
would do at the next one (`emu.host_trap`).  Whatever could change that empties the table, so that
no entry is ever out of date; an entry is made again at the next hit.

A tracepoint is a list of steps, done one after the other:

    FIRE        a probe's enablings run, with arguments read from registers, numbers, and memory
    RUN         an encoded plan is carried out (`emu.engine.plans`)
    FIRE_AFTER  the same as FIRE, if the pc has left a function

The table holds addresses of `Entry`s.  Its size is a power of two, at most half of it is used, and
an entry that is not where its hash says is behind it: so a look-up costs the same for one tracepoint
and for ten thousand.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emu.cpu_core import CoreWord, CpuCore
from emu.native.block import Block
from emu.words import WORD_MASK

if TYPE_CHECKING:
    from emu.frame import Frame

# Arguments that `dtrace_probe()` takes.
ARGUMENTS: Final = 5
# What the table begins with, a power of two.
_SIZE: Final = 1 << 10
# What an address is multiplied with before its upper bits choose a place (Knuth's golden ratio, in 64 bits).
MULTIPLIER: Final = 0x9E37_79B9_7F4A_7C15
# `Entry.space` of a tracepoint that is in every address space.
EVERY_SPACE: Final = WORD_MASK


class StepKind(IntEnum):
    """What a step does; 0 ends a tracepoint."""

    RUN = 1
    FIRE = 2
    FIRE_AFTER = 3


class Header(Block):
    """What machine code is told of the table."""

    table: int
    """The address of its places."""
    shift: int
    """How far a product is shifted right to choose a place."""
    mask: int
    """The number of places, less one."""
    depth: int
    """How many hits are being served: of a hit's Python code the next one may begin."""


class Entry(Block):
    """A tracepoint."""

    at: int
    """Its address in the guest."""
    space: int
    """The address space it is in, as the word of the current one says; `EVERY_SPACE`."""
    steps: int
    """Address of its steps: of `Step`s."""
    core: int
    """The words of DTrace's CPU (`emu.cpu_core`)."""


class Step(Block):
    """One step of a tracepoint."""

    kind: int
    what: int
    """The address of a plan, or of a `Firing`."""
    function: int
    """FIRE_AFTER: where the function begins that is to be left."""
    size: int
    """FIRE_AFTER: its size; 0: it is always left."""


class Firing(Block):
    """A probe that fires: what runs, and where its arguments are."""

    runs: int
    """Address of two words: how many enablings, 0 if they are Python's, and where they are: pairs
    of a function and its first argument."""
    from_memory: int
    """How many arguments are in the guest's memory."""
    place0: int
    """Where in this process the first argument is, or the base of its address."""
    place1: int
    place2: int
    place3: int
    place4: int
    offset0: int
    """What is added to the base."""
    offset1: int
    offset2: int
    offset3: int
    offset4: int
    size0: int
    """How many bytes the first argument has in the guest's memory; 0: it is not there."""
    size1: int
    size2: int
    size3: int
    size4: int
    framed: int
    """`CpuCore.framed`."""
    pushed: int
    """`CpuCore.pushed`."""
    flags: int
    """Bits of `CpuFlag` that are set while it fires."""


@dataclass(frozen=True, slots=True)
class Register:
    """An argument that is in a register."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """An argument that is always the same."""

    value: int


@dataclass(frozen=True, slots=True)
class InMemory:
    """An argument in the guest's memory, `offset` bytes from where a register points.

    0 where there is no memory.
    """

    base: str
    offset: int
    size: int


Argument = Register | Number | InMemory


@dataclass(frozen=True, slots=True, eq=False)
class Fire:
    """A probe fires: the step FIRE."""

    runs: int
    """What `Framework.native_runs` returns."""
    arguments: tuple[Argument, ...]
    """Up to five; those that are missing are 0."""
    find_caller: Callable[[Frame], int] | None = None
    framed: bool = False
    pushed: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True)
class FireAfter:
    """A probe fires if the pc is not in a function any more: the step FIRE_AFTER."""

    fire: Fire
    function: int
    size: int


@dataclass(frozen=True, slots=True)
class Run:
    """An encoded plan is carried out: the step RUN."""

    plan: int


Steps = Sequence[Fire | FireAfter | Run]


class _Context(NamedTuple):
    """What Python code is to find that a firing enters."""

    frame: Frame
    fire: Fire


class Tracepoints:
    """The tracepoints of one engine that machine code serves.

    `place` is where a register is in this process (`Encoder.place`), `constant` where a number is.
    """

    def __init__(self, place: Callable[[str], int], constant: Callable[[int], int]) -> None:
        self.header = Header()
        self._contexts: dict[int, _Context] = {}
        """By address of a `Firing`."""
        self._prepared: CpuCore | None = None
        self._place = place
        self._constant = constant
        self._entries: dict[tuple[int, int], Entry] = {}
        self._kept: list[Any] = []
        self._left: list[Any] = []
        """What was dropped while a hit was served: machine code is in the midst of it."""
        self._table: Any = None
        self._make_table(_SIZE)

    def __len__(self) -> int:
        return len(self._entries)

    def set(self, address: int, core: CpuCore, frame: Frame, steps: Steps, space: int = EVERY_SPACE) -> None:
        """Let machine code serve the hits at an address, in one address space or in all.

        `frame` is the interrupted context for Python code that the probes enter.
        """
        words = (Step * (len(steps) + 1))()
        for number, step in enumerate(steps):
            words[number] = self._step(core, frame, step)
        entry = Entry(address, space, ctypes.addressof(words), core.address)
        self._kept += (words, entry)
        self._entries[address, space] = entry
        if 2 * len(self._entries) > len(self._table):
            self._make_table(2 * len(self._table))
        else:
            self._put(entry)

    def clear(self) -> None:
        """Forget all tracepoints: each goes to Python at its next hit."""
        if not self._entries:
            return
        if self.header.depth:
            self._left += (self._kept, self._table)
        else:
            self._left = []
        self._kept = []
        self._entries = {}
        self._contexts = {}
        self._make_table(_SIZE)

    def fired(self) -> None:
        """Take back what `CpuCore.prepare` did; raises what Python code has raised in a firing."""
        core, self._prepared = self._prepared, None
        if core is None:
            return
        core.trapframe = core.find_caller = None
        core.framed, core.pushed = False, 0
        core.words[CoreWord.PREPARED] = 0
        if core.words[CoreWord.FAILED]:
            core.words[CoreWord.FAILED] = 0
            if core.raise_failure is not None:
                core.raise_failure()

    def _prepare(self, core: CpuCore) -> None:
        """Show Python code the context of the firing that machine code has under way."""
        found = self._contexts.get(core.words[CoreWord.FIRING])
        if found is None:
            return
        self._prepared = core
        core.trapframe, core.find_caller = found.frame, found.fire.find_caller
        core.framed, core.pushed = found.fire.framed, found.fire.pushed
        core.words[CoreWord.PREPARED] = 1

    def _step(self, core: CpuCore, frame: Frame, step: Fire | FireAfter | Run) -> Step:
        match step:
            case Run(plan):
                return Step(StepKind.RUN, plan)
            case FireAfter(fire, function, size):
                return Step(StepKind.FIRE_AFTER, self._firing(core, frame, fire).address, function, size)
            case _:
                return Step(StepKind.FIRE, self._firing(core, frame, step).address)

    def _firing(self, core: CpuCore, frame: Frame, fire: Fire) -> Firing:
        firing = Firing(fire.runs, framed=fire.framed, pushed=fire.pushed, flags=fire.flags)
        for number in range(ARGUMENTS):
            argument = fire.arguments[number] if number < len(fire.arguments) else Number(0)
            match argument:
                case Register(name):
                    place = self._place(name)
                case Number(value):
                    place = self._constant(value)
                case InMemory(base, offset, size):
                    place = self._place(base)
                    setattr(firing, f"offset{number}", offset)
                    setattr(firing, f"size{number}", size)
                    firing.from_memory += 1
            setattr(firing, f"place{number}", place)
        self._kept.append(firing)
        self._contexts[firing.address] = _Context(frame, fire)
        core.prepare = partial(self._prepare, core)
        return firing

    def _make_table(self, size: int) -> None:
        """Make a table of `size` places, with the entries there are."""
        self._table = (ctypes.c_uint64 * size)()
        self.header.table = ctypes.addressof(self._table)
        self.header.shift = 64 - (size.bit_length() - 1)
        self.header.mask = size - 1
        for entry in self._entries.values():
            self._put(entry)

    def _put(self, entry: Entry) -> None:
        place = (entry.at * MULTIPLIER & WORD_MASK) >> self.header.shift
        while self._table[place]:
            other = Entry.from_address(self._table[place])
            if (other.at, other.space) == (entry.at, entry.space):
                break
            place = place + 1 & self.header.mask
        self._table[place] = entry.address
