"""What of an engine machine code finds out by itself (`emu.native.guest`): time and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.access import Access
from emu.engine.clock import VirtualClock
from emu.engine.clock_words import ClockWord
from emu.engine.counting import PREPAID
from emu.engine.engine import Engine
from emu.engine.memory import GuestMemory
from emu.engine.pages import PAGE
from emu.engine.state import Word as EngineWord
from emu.engine.tlb import FILLS
from emu.native.builder import Function
from emu.native.guest import GuestCode, Writer
from emu.native.values import Word
from emu.words import WORD_MASK

_WORD: Final = 8
# Of a block in the table of sizes (`emu.engine.state.TableEntry`).
_COUNT, _SIZE = 8, 12


def engine_code(engine: Engine, clock: VirtualClock) -> GuestCode:
    """Return the functions `now`, `kernel_place` and `user_place` of an engine."""
    symbols = {
        "clock": clock.address,
        "counter": engine.counter.address,
        "cpu_words": engine.cpu.env,
        "ram": engine.memory.pointer,
    }
    functions: dict[str, Writer] = {}
    if clock.period:
        functions["now"] = _Now(engine, clock).write
    if isinstance(engine.memory, GuestMemory):
        functions["kernel_place"] = _linear(engine.isa.kernel_base, engine.memory.size)
    elif engine.fills is not None:
        symbols["fills"] = engine.fills
        functions["user_place"] = _filled
    return GuestCode(functions, symbols)


class _Now:
    """`VirtualClock.now()` and `Counter.instructions` where the CPU stands at a breakpoint."""

    def __init__(self, engine: Engine, clock: VirtualClock) -> None:
        isa = engine.isa
        self._period = clock.period
        self._pc = _WORD * isa.registers.slots[isa.registers.pc]
        self._alignment = isa.instruction_alignment

    def write(self, f: Function, slow: Callable[[], Word]) -> None:
        """Write the function."""
        clock = f.module.symbol("clock")
        count = f.variable(f.load(clock, _WORD * ClockWord.PAUSED))
        with f.when(f.eq(f.load(clock, _WORD * ClockWord.STANDS), 0), likely=True):
            count.set(self._instructions(f, slow))
        shown = f.sub(count.get(), f.load(clock, _WORD * ClockWord.HIDDEN))
        f.ret(f.add(f.mul(shown, self._period), f.load(clock, _WORD * ClockWord.SKIPPED)))

    def _instructions(self, f: Function, slow: Callable[[], Word]) -> Word:
        """Return how many instructions were executed."""
        counter = f.module.symbol("counter")
        count = f.variable(f.sub(f.load(counter, _WORD * EngineWord.TOTAL), PREPAID))
        entry = f.load(counter, _WORD * EngineWord.BLOCK)
        with f.when(f.ne(entry, 0), likely=True):
            place = f.sub(f.load(f.module.symbol("cpu_words"), self._pc), f.load(entry))
            size = f.load(entry, _SIZE, 4)
            with f.when(f.ule(place, size), likely=True):
                whole = f.sub(count.get(), f.load(entry, _COUNT, 4))
                count.set(f.add(whole, self._index(f, place, size, f.load(entry, _COUNT, 4), slow)))
        return count.get()

    def _index(self, f: Function, place: Word, size: Word, count: Word, slow: Callable[[], Word]) -> Word:
        """Return how many instructions of a block lie before a place in it.

        Where instructions have many lengths that is known at the block's start, at its end, and at
        an instruction of the least length before it, as breakpoints are.
        """
        if self._alignment == 4:
            return f.lshr(place, 2)
        index = f.variable(0)
        with f.when(f.ne(place, 0), likely=True):
            left = f.sub(size, place)
            with f.when(f.ugt(left, self._alignment), likely=False):
                f.ret(slow())
            index.set(f.sub(count, f.flag(f.ne(left, 0))))
        return index.get()


def _linear(base: int, size: int) -> Writer:
    """Write `kernel_place`: the linear map has all RAM."""

    def write(f: Function, _slow: Callable[[], Word]) -> None:
        address, length = f.parameters
        offset = f.sub(address, base)
        inside = f.both(f.ule(length, size), f.ule(offset, f.sub(size, length)))
        f.ret(f.select(inside, f.add(f.module.symbol("ram"), offset), 0))

    return write


def _filled(f: Function, _slow: Callable[[], Word]) -> None:
    """Write `user_place`: a page that the CPU has read is in the table of answers."""
    address, length = f.parameters
    page, offset = f.lshr(address, PAGE.bit_length() - 1), f.and_(address, PAGE - 1)
    entry = f.add(f.module.symbol("fills"), f.shl(f.and_(page, FILLS - 1), 4))
    wanted = f.or_(page, f.load(f.module.symbol("counter"), _WORD * EngineWord.GENERATION))
    answer = f.load(entry, _WORD)
    granted = f.ne(f.and_(answer, int(Access.READ)), 0)
    known = f.both(f.eq(f.load(entry), wanted), granted)
    known = f.both(known, f.both(f.ule(length, PAGE), f.ule(offset, f.sub(PAGE, length))))
    place = f.add(f.module.symbol("ram"), f.or_(f.and_(answer, ~(PAGE - 1) & WORD_MASK), offset))
    f.ret(f.select(known, place, 0))
