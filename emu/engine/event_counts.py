"""Counting, by mode, what the traced code does: instructions, loads, stores, branches.

A second hook is called at each block of code while something is counted.  It adds what the block
before has done: the count of instructions tells how many of that block's instructions were executed
(all, unless a fault ended it), and `Isa.events` what each of them does.  So instructions that the
clock leaves out (`emu.engine.clock`), such as those of a probe's handler, are left out here, too.

`_enter_block` defines the hook; `emu.engine.event_counts_code` is the same in machine code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import unicorn

from emu.bad_address import BadAddressError
from emu.engine.clock import VirtualClock
from emu.engine.engine import Engine
from emu.engine.event_counts_code import hook_code
from emu.engine.event_words import BLOCKS, ENTRY, ROW, Counted, EventWords, Mode
from emu.engine.state import NEVER, Word
from emu.function_address import function_address
from emu.isa.base import Isa
from emu.isa.events import Events
from emu.native.linking import Linked

_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)
_LEARN: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
_CHECK: Final = ctypes.CFUNCTYPE(None)
_EVENTS: Final = {
    Counted.LOADS: Events.LOAD,
    Counted.STORES: Events.STORE,
    Counted.ACCESSES: Events.LOAD | Events.STORE,
    Counted.BRANCHES: Events.BRANCH,
}


@dataclass(eq=False, slots=True)
class Alarm:
    """Calls `ring`, which sets another `due`, at the first block at which a sum has reached `due`."""

    what: Counted
    modes: Collection[Mode]
    due: int
    ring: Callable[[], object]


def rows_of(isa: Isa, code: bytes) -> ctypes.Array[ctypes.c_uint64]:
    """Return a row of sums for none, one, two, ... of the instructions of some code."""
    rows = [0] * len(Counted)
    at = 0
    while at < len(code):
        length = isa.instruction_length(code[at:]) or isa.instruction_alignment
        found = isa.events(code[at : at + length])
        row = [bool(found & _EVENTS[what]) if what in _EVENTS else 1 for what in Counted]
        rows += [before + now for before, now in zip(rows[-len(Counted) :], row, strict=True)]
        at += length
    return (ctypes.c_uint64 * len(rows))(*rows)


class EventCounts:
    """The sums of one engine, which are kept while there is an alarm.

    `code(address, size)` reads code as it is in the program, without patches.
    """

    def __init__(self, engine: Engine, clock: VirtualClock, code: Callable[[int, int], bytes]) -> None:
        self._engine = engine
        self._clock = clock
        self._code = code
        self._state = engine.counter.state
        self._sums = (ctypes.c_uint64 * (len(Mode) * len(Counted)))()
        self._table = (ctypes.c_uint8 * (BLOCKS * ENTRY))()
        self._words = EventWords()
        self._alarms: list[Alarm] = []
        self._blocks: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        self._known: dict[bytes, ctypes.Array[ctypes.c_uint64]] = {}
        self._nothing = rows_of(engine.isa, b"")
        self._kept = _LEARN(self._learn), _CHECK(self._check)
        self._linked: Linked | None = None
        self._hook = 0

    def _callback(self) -> object:
        """Return the hook."""
        if not self._engine.accelerated:
            return _HOOK(self._enter)
        learn, check = map(function_address, self._kept)
        places = {"words": self._words.address, "sums": ctypes.addressof(self._sums)}
        places |= {"table": ctypes.addressof(self._table), "learn": learn, "check": check}
        places |= {"counter": self._engine.counter.address, "clock": self._clock.address}
        self._linked = Linked(hook_code(self._engine.isa.kernel_start), places)
        return ctypes.c_void_p(self._linked.address("enter"))

    def total(self, what: Counted, modes: Collection[Mode]) -> int:
        """Return the sum up to the start of the current block."""
        return sum(int(self._sums[len(Counted) * mode + what]) for mode in modes)

    def add(self, alarm: Alarm) -> None:
        """Add an alarm, between two runs."""
        if not self._alarms:
            self._forget()
            words = self._words
            words.before, words.count, words.rows = self._clock.executed, 0, ctypes.addressof(self._nothing)
            words.sums = ctypes.addressof(self._sums)
            self._hook = self._engine.observe(unicorn.UC_HOOK_BLOCK, self._callback())
            self._engine.counter.on_forget = self._forget
            self._engine.counter.translate_anew()
        self._alarms.append(alarm)
        self._words.check_at = 0

    def remove(self, alarm: Alarm) -> None:
        """Remove an alarm, between two runs."""
        self._alarms.remove(alarm)
        if not self._alarms:
            self._engine.observe_no_more(self._hook)
            self._engine.counter.on_forget = lambda: None
            self._engine.counter.translate_anew()

    def _forget(self) -> None:
        """Forget the blocks: no block is at an address of all ones."""
        self._blocks.clear()
        ctypes.memset(self._table, 0xFF, ctypes.sizeof(self._table))

    def _enter(self, _uc: int, address: int, size: int, _data: int) -> None:
        """Take note of the block that begins: the hook."""
        if self._state[Word.BLOCK]:  # else a deadline has stopped the run before the block
            self._enter_block(address, size)

    def _enter_block(self, address: int, size: int) -> None:
        words = self._words
        before = self._clock.executed_before_block
        executed = before - words.before
        row = (ctypes.c_uint64 * len(Counted)).from_address(words.rows + ROW * max(0, min(executed, words.count)))
        sums = (ctypes.c_uint64 * len(Counted)).from_address(words.sums)
        for what in Counted:
            sums[what] += executed if what is Counted.INSTRUCTIONS else row[what]
        words.before = before
        mode = Mode.KERNEL if self._engine.isa.is_kernel_address(address) else Mode.USER
        words.sums = ctypes.addressof(self._sums) + ROW * mode
        rows = self._rows_at(address, size)
        words.rows, words.count = ctypes.addressof(rows), len(rows) // len(Counted) - 1
        if before >= words.check_at:
            self._check()

    def _learn(self, address: int, size: int, entry: int) -> None:
        """Fill the entry of a block."""
        rows = self._rows_at(address, size)
        words = (ctypes.c_uint64 * 3).from_address(entry)
        words[:] = [address, ctypes.addressof(rows), len(rows) // len(Counted) - 1]

    def _rows_at(self, address: int, size: int) -> ctypes.Array[ctypes.c_uint64]:
        rows = self._blocks.get(address)
        if rows is None:
            try:
                code = self._code(address, size)
            except BadAddressError:
                return self._nothing
            rows = self._known.get(code) or rows_of(self._engine.isa, code)
            self._blocks[address] = self._known[code] = rows
        return rows

    def _check(self) -> None:
        """Ring the alarms that are due; an instruction adds at most one to each sum."""
        missing = NEVER
        for alarm in tuple(self._alarms):
            if self.total(alarm.what, alarm.modes) >= alarm.due:
                alarm.ring()
            missing = min(missing, max(1, alarm.due - self.total(alarm.what, alarm.modes)))
        self._words.check_at = min(self._words.before + missing, NEVER)
