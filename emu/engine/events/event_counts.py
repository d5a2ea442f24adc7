"""Counting, by mode, what the traced code does: instructions, loads, stores, branches.

While something is counted, a function is called at each block of code (`Word.AT_BLOCK`).  It adds
what the block before has done: the count of instructions tells how many of that block's
instructions were executed (all, unless a fault ended it), and `Isa.events` what each of them does.
The instructions that the clock leaves out (`emu.engine.time.clock`), such as those of a probe's
handler, are left out here, too.

What a block does is found out once for each entry that the engine makes for a block.  A block that
is translated again gets another entry, or the engine says that it forgets its entries.  So blocks
at one address in several processes, and code that changes, are told apart.

`_enter` defines the function; `emu.engine.events.event_counts_code` is the same in machine code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from emu.engine.engine import Engine
from emu.engine.events.event_counts_code import hook_code
from emu.engine.events.event_words import BLOCKS, ROW, Counted, EventWords, KnownBlock, Mode
from emu.engine.memory.pages import PAGE
from emu.engine.state import NEVER, TableEntry, Word
from emu.engine.time.clock import VirtualClock
from emu.isa.base import Events, Isa
from emu.native.link import Linked
from emu.support.plain import address_of, function_address, zeroed
from emu.support.words import BadAddressError

_AT_BLOCK: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
_FILL: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)
_CHECK: Final = ctypes.CFUNCTYPE(None)
_EVENTS: Final = {
    Counted.LOADS: Events.LOAD,
    Counted.STORES: Events.STORE,
    Counted.ACCESSES: Events.LOAD | Events.STORE,
    Counted.BRANCHES: Events.BRANCH,
}
# Bytes of the longest instruction.
_LONGEST: Final = 15
# Returns code at an address in the program that runs, without patches; of code that serves a probe, the copies of the
# program's instructions.
Code = Callable[[int, int], bytes]


@dataclass(eq=False, slots=True)
class Alarm:
    """Calls `ring`, which sets another `due`, at the first block at which a sum has reached `due`."""

    what: Counted
    modes: Collection[Mode]
    due: int
    ring: Callable[[], object]


def rows_of(isa: Isa, code: bytes, size: int) -> ctypes.Array[ctypes.c_uint64]:
    """Return a row of sums for none, one, two, ... of the instructions of a block.

    `size` is the block's, which may end inside its last instruction.
    """
    rows = [0] * len(Counted)
    at = 0
    while at < min(size, len(code)):
        length = isa.instruction_length(code[at:]) or isa.instruction_alignment
        found = isa.events(code[at : at + length])
        row = [bool(found & _EVENTS[what]) if what in _EVENTS else 1 for what in Counted]
        rows += [before + now for before, now in zip(rows[-len(Counted) :], row, strict=True)]
        at += length
    return (ctypes.c_uint64 * len(rows))(*rows)


def _whole(isa: Isa, code: Code, address: int, size: int) -> bytes:
    """Return the code of a block.

    A block ends with a breakpoint, which may be shorter than the instruction it has displaced: then
    what follows it is returned, too.
    """
    found = code(address, size)
    at = 0
    while at < len(found):
        length = isa.instruction_length(found[at:])
        if not length and len(found) - at < _LONGEST:
            return found + code(address + size, min(_LONGEST - 1, PAGE - (address + size) % PAGE))
        at += length or isa.instruction_alignment
    return found


class EventCounts:
    """The sums of one engine, which are kept while there is an alarm."""

    def __init__(self, engine: Engine, clock: VirtualClock, code: Code) -> None:
        self._engine = engine
        self._clock = clock
        self._code = code
        self._state = engine.counter.state
        self._sums = (ctypes.c_uint64 * (len(Mode) * len(Counted)))()
        self._table = zeroed(BLOCKS * ctypes.sizeof(KnownBlock))
        self._words = EventWords()
        self._alarms: list[Alarm] = []
        self._blocks: dict[tuple[int, int], ctypes.Array[ctypes.c_uint64]] = {}
        self._known: dict[tuple[bytes, int], ctypes.Array[ctypes.c_uint64]] = {}
        self._nothing = rows_of(engine.isa, b"", 0)
        self._kept = _FILL(self._fill), _CHECK(self._check)
        self._linked: Linked | None = None
        self._function: object = None
        engine.counter.on_forget = self._forget

    def _at_block(self) -> int:
        """Return the address of the function that is called at each block."""
        if self._engine.accelerated:
            fill, check = map(function_address, self._kept)
            places = {"words": self._words.address, "sums": ctypes.addressof(self._sums)}
            places |= {"table": address_of(self._table), "fill": fill, "check": check}
            places |= {"counter": self._engine.counter.address, "clock": self._clock.address}
            self._linked = Linked(hook_code(self._engine.isa.kernel_start), places)
            return self._linked.address("enter")
        self._function = function = _AT_BLOCK(self._enter)
        return function_address(function)

    def total(self, what: Counted, modes: Collection[Mode]) -> int:
        """Return the sum up to the start of the current block."""
        return sum(int(self._sums[len(Counted) * mode + what]) for mode in modes)

    def add(self, alarm: Alarm) -> None:
        """Add an alarm, between two runs."""
        words = self._words
        if not self._alarms:
            counter = self._engine.counter
            words.all_executed, words.before = counter.all_executed, self._clock.executed
            words.count, words.rows = 0, ctypes.addressof(self._nothing)
            words.sums = ctypes.addressof(self._sums)
            counter.at_block = self._enter
            self._state[Word.AT_BLOCK] = self._at_block()
        self._alarms.append(alarm)
        words.check_at = 0

    def remove(self, alarm: Alarm) -> None:
        """Remove an alarm, between two runs."""
        self._alarms.remove(alarm)
        if not self._alarms:
            self._state[Word.AT_BLOCK] = 0

    def _forget(self) -> None:
        """Forget the blocks."""
        if self._blocks:
            self._blocks.clear()
            ctypes.memset(address_of(self._table), 0, len(self._table))

    def _enter(self, address: int) -> None:
        """Take note of the block that begins, whose entry is at an address."""
        entry, words = TableEntry.from_address(address), self._words
        all_executed, before = self._engine.counter.all_executed, self._clock.executed_before_block
        self._add(all_executed - words.all_executed, before - words.before)
        words.all_executed, words.before = all_executed, before
        mode = Mode.KERNEL if self._engine.isa.is_kernel_address(entry.address) else Mode.USER
        words.sums = ctypes.addressof(self._sums) + ROW * mode
        rows = self._rows_at(address, entry)
        words.rows, words.count = ctypes.addressof(rows), len(rows) // len(Counted) - 1
        if self._clock.stands_still:
            words.count = 0
        if before >= words.check_at:
            self._check()

    def _add(self, inside: int, counted: int) -> None:
        """Add what the first `inside` instructions of the block before have done."""
        words = self._words
        row = (ctypes.c_uint64 * len(Counted)).from_address(words.rows + ROW * max(0, min(inside, words.count)))
        sums = (ctypes.c_uint64 * len(Counted)).from_address(words.sums)
        for what in Counted:
            sums[what] += counted if what is Counted.INSTRUCTIONS else row[what]

    def _fill(self, address: int, place: int) -> None:
        """Fill the place of a block, whose entry is at an address."""
        entry, known = TableEntry.from_address(address), KnownBlock.from_address(place)
        rows = self._rows_at(address, entry)
        known.entry, known.address = address, entry.address
        known.rows, known.count = ctypes.addressof(rows), len(rows) // len(Counted) - 1

    def _rows_at(self, address: int, entry: TableEntry) -> ctypes.Array[ctypes.c_uint64]:
        rows = self._blocks.get((address, entry.address))
        if rows is None:
            try:
                code = _whole(self._engine.isa, self._code, entry.address, entry.size)
            except BadAddressError:
                return self._nothing
            key = code, entry.size
            rows = self._known.get(key) or rows_of(self._engine.isa, *key)
            self._blocks[address, entry.address] = self._known[key] = rows
        return rows

    def _check(self) -> None:
        """Ring the alarms that are due; an instruction adds at most one to each sum."""
        missing = NEVER
        for alarm in tuple(self._alarms):
            if self.total(alarm.what, alarm.modes) >= alarm.due:
                alarm.ring()
            missing = min(missing, max(1, alarm.due - self.total(alarm.what, alarm.modes)))
        self._words.check_at = min(self._words.before + missing, NEVER)
