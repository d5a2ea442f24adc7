"""The hook of `emu.engine.event_counts` in machine code."""

from __future__ import annotations

from typing import Final

from emu.engine.clock_words import ClockWord
from emu.engine.counting import PREPAID
from emu.engine.event_words import BLOCKS, ENTRY, ROW, Counted, EventWords
from emu.engine.state import TableEntry, Word
from emu.native.builder import Function, Module
from emu.native.values import Value

_SIZE: Final = 0xFFFF_FFFF
# The addresses that the linker inserts: the words of the counter and of the clock, `EventWords`, the sums of both
# modes, the table, and two functions of Python: learn(address, size, entry) fills an entry, check() looks at the sums.
_NAMES: Final = ("counter", "clock", "words", "sums", "table", "learn", "check")


def hook_code(kernel_start: int) -> bytes:
    """Return the function enter(uc, address, size, data) as an object file."""
    module = Module()
    symbols = {name: module.symbol(name) for name in _NAMES}
    f = module.function("enter", 4)
    _uc, address, size, _data = f.parameters
    words = symbols["words"]
    entry = f.load(symbols["counter"], 8 * Word.BLOCK)
    f.ret_if(f.eq(entry, 0), likely=False)
    before = _executed(f, symbols, entry)
    _add(f, words, f.sub(before, f.load(words, EventWords.offset("before"))))
    f.store(words, before, EventWords.offset("before"))
    kernel = f.select(f.uge(address, kernel_start), ROW, 0)
    f.store(words, f.add(symbols["sums"], kernel), EventWords.offset("sums"))
    mixed = f.and_(f.xor(f.lshr(address, 1), f.lshr(address, 17)), BLOCKS - 1)
    known = f.add(symbols["table"], f.mul(mixed, ENTRY))
    with f.when(f.ne(f.load(known), address), likely=False):
        f.call(symbols["learn"], address, f.and_(size, _SIZE), known)
    f.store(words, f.load(known, 8), EventWords.offset("rows"))
    f.store(words, f.load(known, 16), EventWords.offset("count"))
    with f.when(f.sge(before, f.load(words, EventWords.offset("check_at"))), likely=False):
        f.call(symbols["check"])
    f.ret()
    return module.compiled("events")


def _executed(f: Function, symbols: dict[str, Value], entry: Value) -> Value:
    """Return `VirtualClock.executed_before_block`."""
    counter, clock = symbols["counter"], symbols["clock"]
    total = f.sub(f.load(counter, 8 * Word.TOTAL), f.load(entry, TableEntry.count.offset, 4))
    stands = f.ne(f.load(clock, 8 * ClockWord.STANDS), 0)
    shown = f.select(stands, f.load(clock, 8 * ClockWord.PAUSED), f.sub(total, PREPAID))
    return f.sub(shown, f.load(clock, 8 * ClockWord.HIDDEN))


def _add(f: Function, words: Value, executed: Value) -> None:
    """Add what the first instructions of the block before do."""
    sums, count = f.load(words, EventWords.offset("sums")), f.load(words, EventWords.offset("count"))
    known = f.select(f.slt(executed, count), executed, count)
    first = f.select(f.slt(executed, 0), 0, known)
    row = f.add(f.load(words, EventWords.offset("rows")), f.mul(first, ROW))
    for what in Counted:
        more = executed if what is Counted.INSTRUCTIONS else f.load(row, 8 * what)
        f.store(sums, f.add(f.load(sums, 8 * what), more), 8 * what)
