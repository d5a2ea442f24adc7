"""Tracepoints whose hits machine code serves: a hash table by address, in plain memory.

A hit that is not in the table goes to Python, which serves it and then stores its actions for the
next hit in the table (`emu.probe.host_trap`). Every event that could change these actions empties
the table, so that no entry is ever out of date; an entry is made again at the next hit.

The table is one by address (`emu.engine.hits.address_table`). Handlers describe their hits with the
steps of `emu.engine.hits.hit_steps`; machine code reads them as `emu.engine.hits.tracepoint_blocks`
lays out.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from emu.displaced.cpu_core import CoreWord, CpuCore
from emu.displaced.frame import Frame
from emu.engine.hits.address_table import AddressTable
from emu.engine.hits.hit_steps import (
    ARGUMENTS,
    Argument,
    Call,
    Fire,
    FireAfter,
    FireWhen,
    InMemory,
    Number,
    Register,
    Run,
    Steps,
)
from emu.engine.hits.plan_encoding import Encoder
from emu.engine.hits.tracepoint_blocks import Entry, Firing, Header, Step, StepKind
from emu.support.words import WORD_MASK

# The initial size of the table.
_SIZE: Final = 1 << 10
# Where the words about arguments begin: five for each property, in the order of `Tracepoints._located`.
_ARGUMENT_WORDS: Final = Firing.offset("place0")
_ArgumentWords: Final = ctypes.c_uint64 * (5 * ARGUMENTS)
_ARGUMENT_BYTES: Final = ctypes.sizeof(_ArgumentWords)
_WORD: Final = 8
_STEP_WORDS: Final = ctypes.sizeof(Step) // _WORD
_END: Final = (0,) * _STEP_WORDS
# A step that runs a plan, whose address is the word at this place.
_RUN: Final = (StepKind.RUN, *_END[1:])
_WHAT: Final = Step.offset("what") // _WORD


class _Context(NamedTuple):
    """The context for Python code that a firing calls."""

    frame: Frame
    fire: Fire


class _Made(NamedTuple):
    """A `Firing` that exists."""

    core: CpuCore
    context: _Context
    address: int


class Tracepoints:
    """The tracepoints of one engine that machine code serves.

    `space` and `thread` are the addresses of the words with the numbers of the current address
    space and the current thread.
    """

    def __init__(self, encoder: Encoder, space: int, thread: int) -> None:
        self.header = Header(space=space, thread=thread, version=1)
        self._space, self._thread = ctypes.c_uint64.from_address(space), ctypes.c_uint64.from_address(thread)
        self.known: dict[tuple[int, int, int], Callable[[int], int] | None] = {}
        """The decisions about hits, by address, space and thread: what does the rest of one that
        machine code could not; None: Python serves the hits."""
        self._contexts: dict[int, _Context] = {}
        """By address of a `Firing`."""
        self._firings: dict[Fire, _Made] = {}
        self._lasting: dict[int, _Context] = {}
        """The same of firings that providers keep."""
        self.fire = 0
        """Address of `u64 fire(firing, core)`, for the machine code of providers; 0: hits are not
        served by machine code."""
        self.reach = 0
        """Address of `u64 reach(address, access)`: where eight bytes of the guest are in this
        process; 0: out of reach."""
        self.take = 0
        """Address of `u64 take(address)`: serves a hit as the callbacks do, and returns HANDLED, or
        `ASK` of `emu.engine.hits.firing_code`."""
        self.argument = 0
        """Address of `u64 argument(firing, number)`: one of a firing's arguments."""
        self.on_set: Callable[[int], None] = lambda _address: None
        """Is told the address of a tracepoint that machine code will serve."""
        self._prepared: CpuCore | None = None
        self.calling: CpuCore | None = None
        """The CPU that the kernel's own calls fire on."""
        self._encoder = encoder
        self._entries: AddressTable[tuple[int, int, int], Entry] = AddressTable(self.header, _SIZE)
        self._locations: dict[tuple[Argument, ...], tuple[ctypes.Array[ctypes.c_uint64], bool]] = {}
        """By arguments: what `locate` stores for them."""
        self._late: dict[tuple[Argument, ...], Firing] = {}
        """By arguments 5 to 9: a block that has them as its first ones."""
        self._words_of: dict[type, Callable[[CpuCore, Frame, Any], tuple[int, ...]]] = {
            Call: self._call,
            Fire: self._fire,
            FireAfter: self._fire_after,
            FireWhen: self._fire_when,
        }
        self._kept: list[Any] = []
        self._left: list[Any] = []
        """Objects that were dropped while a hit was served: machine code still uses them."""

    def __len__(self) -> int:
        return len(self._entries.blocks)

    def find_thread_at(self, place: int) -> None:
        """Find which thread runs in another word of this process."""
        self.header.thread = place
        self._thread = ctypes.c_uint64.from_address(place)

    def here(self, address: int) -> tuple[int, int, int]:
        """Return an address with the current address space and the current thread."""
        return address, self._space.value, self._thread.value

    def set(self, key: tuple[int, int, int], core: CpuCore, frame: Frame, steps: Steps) -> None:
        """Let machine code serve the hits at an address, in a space and a thread (`EVERY`: in all).

        `frame` is the interrupted context for Python code that the probes enter.
        """
        words: list[int] = []
        plans: list[int] = []
        begins: list[tuple[int, int]] = []  # by the place of a word: the place of the plan whose address it is
        behind = _STEP_WORDS * (len(steps) + 1)
        for step in steps:
            if isinstance(step, Run):
                begins.append((len(words) + _WHAT, behind + len(plans)))
                words += _RUN
                plans += self._encoder.words(step.operations)
            else:
                words += self._words_of[type(step)](core, frame, step)
        block = array("Q", (*words, *_END, *plans))
        start, _ = block.buffer_info()
        for place, plan in begins:
            block[place] = start + _WORD * plan
        entry = Entry(*key, start, core.address)
        self._kept += (block, entry)
        self.on_set(key[0])
        self._entries.set(key, entry)
        self.header.version += 1

    def clear(self) -> None:
        """Forget all decisions: each next hit goes to Python again."""
        if self.known:
            self.known = {}
        if not self._entries.blocks:
            return
        if self.header.depth:
            self._left += (self._kept, self._entries.places)
        else:
            self._left = []
        self._kept = []
        self._contexts = {}
        self._firings = {}
        self._entries.clear()
        self.header.version += 1

    def fired(self) -> None:
        """Undo `CpuCore.prepare`; raise the exception of Python code in a firing."""
        core, self._prepared = self._prepared or self.calling, None
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
        """Provide the context of the current firing of machine code to Python code."""
        firing = core.words[CoreWord.FIRING] or core.words[CoreWord.ASIDE]
        found = self._contexts.get(firing) or self._lasting.get(firing)
        if found is None:
            return
        self._prepared = core
        core.trapframe, core.find_caller = found.frame, found.fire.find_caller
        core.framed, core.pushed = found.fire.framed, found.fire.pushed
        core.words[CoreWord.PREPARED] = 1

    # -- the words of a `Step` of each type

    @staticmethod
    def _call(_core: CpuCore, _frame: Frame, step: Call) -> tuple[int, ...]:
        return StepKind.CALL, step.argument, step.function, 0, 0

    def _fire(self, core: CpuCore, frame: Frame, step: Fire) -> tuple[int, ...]:
        return StepKind.FIRE, self._firing(core, frame, step), 0, 0, 0

    def _fire_after(self, core: CpuCore, frame: Frame, step: FireAfter) -> tuple[int, ...]:
        firing = self._firing(core, frame, step.fire)
        return StepKind.FIRE_AFTER, firing, step.function, step.size, self._encoder.place(step.pc)

    def _fire_when(self, core: CpuCore, frame: Frame, step: FireWhen) -> tuple[int, ...]:
        firing = self._firing(core, frame, step.fire)
        return StepKind.FIRE_WHEN, firing, step.value, 1, self._encoder.place(step.register)

    def lasting(self, core: CpuCore, frame: Frame, fire: Fire) -> Firing:
        """Return a provider's argument of `fire`, valid while the provider keeps the object."""
        firing = self._made(core, fire)
        self._lasting[firing.address] = _Context(frame, fire)
        return firing

    def temporary(self, name: str) -> int:
        """Return the address of the word that `Register(name)` reads, if `name` is not a register."""
        return self._encoder.place(name)

    def _firing(self, core: CpuCore, frame: Frame, fire: Fire) -> int:
        """Return the address of the `Firing` of `fire`; one serves all hits that share `fire`."""
        known = self._firings.get(fire)
        if known is not None and known.core is core and known.context.frame is frame:
            return known.address
        firing = self._made(core, fire)
        self._kept.append(firing)
        context = self._contexts[firing.address] = _Context(frame, fire)
        self._firings[fire] = _Made(core, context, firing.address)
        return firing.address

    def _made(self, core: CpuCore, fire: Fire) -> Firing:
        firing = Firing(fire.runs, 1, framed=fire.framed, pushed=fire.pushed, flags=fire.flags, trap=1)
        self.locate(firing, fire.arguments)
        if fire.late is not None:
            firing.late = self._late_arguments(fire.late).address
        core.prepare = partial(self._prepare, core)
        return firing

    def _late_arguments(self, arguments: tuple[Argument, ...]) -> Firing:
        """Return the block with some arguments 5 to 9, which few sites have."""
        if arguments not in self._late:
            self._late[arguments] = Firing()
            self.locate(self._late[arguments], arguments)
        return self._late[arguments]

    def locate(self, firing: Firing, arguments: Sequence[Argument]) -> None:
        """Store the locations of a firing's arguments for machine code; missing ones are 0."""
        # Hits are stored by the thousand, and most have the arguments of others.
        key = tuple(arguments)
        known = self._locations.get(key)
        if known is None:
            known = self._locations[key] = self._located_all(key)
        words, simple = known
        ctypes.memmove(firing.address + _ARGUMENT_WORDS, words, _ARGUMENT_BYTES)
        if not simple:
            firing.simple = 0

    def _located_all(self, arguments: tuple[Argument, ...]) -> tuple[ctypes.Array[ctypes.c_uint64], bool]:
        """Return the words about a firing's arguments, and whether all are words of this process."""
        missing = (Number(0),) * (ARGUMENTS - len(arguments))
        located = [self._located(argument) for argument in (*arguments[:ARGUMENTS], *missing)]
        words = _ArgumentWords(*(word & WORD_MASK for one in zip(*located, strict=True) for word in one))
        return words, not any(size or unused for _place, _offset, size, unused, _signed in located)

    def _located(self, argument: Argument) -> tuple[int, int, int, int, int]:
        """Return place, offset, size, unused bits and sign of an argument, as in a `Firing`."""
        match argument:
            case Register(name, bytes_, signed):
                return self._encoder.place(name), 0, 0, 64 - 8 * bytes_, signed
            case Number(value):
                return self._encoder.constant(value & WORD_MASK), 0, 0, 0, 0
            case InMemory(base, offset, size, signed):
                return self._encoder.place(base), offset, size, 64 - 8 * size, signed
