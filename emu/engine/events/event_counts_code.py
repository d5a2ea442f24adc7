"""The hook of `emu.engine.events.event_counts` in machine code."""

from __future__ import annotations

import ctypes
from typing import Final

from emu.engine.events.event_words import BLOCKS, ROW, Counted, EventWords, KnownBlock
from emu.engine.state import TableEntry, Word
from emu.engine.time.clock_words import ClockWord
from emu.engine.time.counter import PREPAID
from emu.native.builder import Function, Module
from emu.native.operations import Value
from emu.native.operations import Word as Operand

# The addresses that the linker inserts: the words of the counter and of the clock, `EventWords`, the sums of both
# modes, the table, and two functions of Python: fill(entry, place) fills a place, check() looks at the sums.
_NAMES: Final = ("counter", "clock", "words", "sums", "table", "fill", "check")


def hook_code(kernel_start: int) -> bytes:
    """Return the function enter(entry) as an object file."""
    module = Module()
    symbols = {name: module.symbol(name) for name in _NAMES}
    f = module.function("enter", 1)
    (entry,) = f.parameters
    words, clock = symbols["words"], symbols["clock"]
    total = f.load(symbols["counter"], 8 * Word.TOTAL)
    executed = f.sub(f.sub(total, PREPAID), f.load(entry, TableEntry.count.offset, 4))
    all_executed = f.add(executed, f.load(symbols["counter"], 8 * Word.DISCOUNTED))
    stands = f.ne(f.load(clock, 8 * ClockWord.STANDS), 0)
    shown = f.select(stands, f.load(clock, 8 * ClockWord.PAUSED), executed)
    before = f.sub(shown, f.load(clock, 8 * ClockWord.HIDDEN))
    _add(f, words, all_executed, before)
    address = f.load(entry)
    kernel = f.select(f.uge(address, kernel_start), ROW, 0)
    f.store(words, f.add(symbols["sums"], kernel), EventWords.offset("sums"))
    mixed = f.and_(f.xor(f.lshr(entry, 3), f.lshr(entry, 17)), BLOCKS - 1)
    place = f.add(symbols["table"], f.mul(mixed, ctypes.sizeof(KnownBlock)))
    other = f.ne(f.load(place, KnownBlock.offset("entry")), entry)
    with f.when(f.either(other, f.ne(f.load(place, KnownBlock.offset("address")), address)), likely=False):
        f.call(symbols["fill"], entry, place)
    f.store(words, f.load(place, KnownBlock.offset("rows")), EventWords.offset("rows"))
    # What runs while the clock stands still is not the program's: its rows are not looked at.
    f.store(words, f.select(stands, 0, f.load(place, KnownBlock.offset("count"))), EventWords.offset("count"))
    with f.when(f.sge(before, f.load(words, EventWords.offset("check_at"))), likely=False):
        f.call(symbols["check"])
    f.ret()
    return module.compiled("events")


def _add(f: Function, words: Value, all_executed: Operand, before: Operand) -> None:
    """Add what the first instructions of the block before have done."""
    inside = f.sub(all_executed, f.load(words, EventWords.offset("all_executed")))
    counted = f.sub(before, f.load(words, EventWords.offset("before")))
    sums, count = f.load(words, EventWords.offset("sums")), f.load(words, EventWords.offset("count"))
    known = f.select(f.slt(inside, count), inside, count)
    row = f.add(f.load(words, EventWords.offset("rows")), f.mul(f.select(f.slt(known, 0), 0, known), ROW))
    for what in Counted:
        more = counted if what is Counted.INSTRUCTIONS else f.load(row, 8 * what)
        f.store(sums, f.add(f.load(sums, 8 * what), more), 8 * what)
    f.store(words, all_executed, EventWords.offset("all_executed"))
    f.store(words, before, EventWords.offset("before"))
