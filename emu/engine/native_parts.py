"""Machine code that reads an engine (`emu.native.guest`): time and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.engine.hits.plan_encoding import Window
from emu.engine.hits.stack_arguments import late_argument_code
from emu.engine.hits.walk_code import write_walk
from emu.engine.memory.access import Access
from emu.engine.memory.memory import GuestMemory
from emu.engine.memory.pages import PAGE
from emu.engine.qemu.tlb import FILLS
from emu.engine.state import Word as EngineWord
from emu.engine.time.clock import VirtualClock
from emu.engine.time.clock_words import ClockWord
from emu.engine.time.counter import PREPAID
from emu.isa.base import Isa
from emu.native.builder import Function
from emu.native.guest import GuestCode, Writer
from emu.native.operations import Value, Word
from emu.support.words import WORD_MASK

_WORD: Final = 8
# The entry of a block in the table of sizes (`emu.engine.state.TableEntry`).
_COUNT, _SIZE = 8, 12


def engine_code(engine: Engine, clock: VirtualClock) -> GuestCode:
    """Return the functions of an engine: time, registers, memory, arguments."""
    symbols = {
        "clock": clock.address,
        "counter": engine.counter.address,
        "cpu_words": engine.cpu.env,
        "ram": engine.memory.pointer,
        "firing_argument": engine.tracepoints.argument,
    }
    functions: dict[str, Writer] = {"register": _register(engine.isa), **late_argument_code(engine.isa)}
    if clock.period:
        functions["now"] = _Now(engine, clock).write
    if isinstance(engine.memory, GuestMemory):
        symbols["ram_end"] = engine.memory.pointer + engine.memory.size
        functions["kernel_pointer"] = _kernel_pointer(engine.isa, tuple(engine.memory.windows()))
        if engine.isa.paging.tables is not None:
            functions["user_pointer"] = _user_pointer(engine.isa)
    elif engine.hosted:
        functions["user_pointer"] = _filled
    return GuestCode(functions, symbols)


class _Now:
    """`VirtualClock.now()` and `Counter.instructions` of a CPU at a breakpoint."""

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
        """Return the number of executed instructions."""
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
        """Return the number of instructions before a place in a block.

        If instructions have many lengths, it is known only at the block's start, at its end, and at
        its last instruction if that has the shortest length, as breakpoints have.
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


def _register(isa: Isa) -> Writer:
    """Write `register(index)`: a register of the context of a trap, by its number in D's `regs[]`.

    Python answers for those that the CPU state does not hold as a word, and for those that a trap's
    frame has not, or has with a constant value (`emu.probe.trap_frames.LiveFrame`).
    """
    held = (set(isa.traps.frame) & set(isa.registers.slots)) - set(dict(isa.traps.pushed))

    def write(f: Function, slow: Callable[[], Word]) -> None:
        with f.cases(f.parameters[0]) as case:
            for index, name in enumerate(isa.registers.dtrace):
                if name in held:
                    with case(index):
                        f.ret(f.load(f.module.symbol("cpu_words"), _WORD * isa.registers.slots[name]))
        f.ret(slow())

    return write


def _kernel_pointer(isa: Isa, windows: tuple[Window, ...]) -> Writer:
    """Write `kernel_pointer`: an address outside the windows is looked up in the page tables."""

    def write(f: Function, _slow: Callable[[], Word]) -> None:
        address, length = f.parameters
        for start, size, physical in windows:
            offset = f.sub(address, start)
            inside = f.both(f.ule(length, size), f.ule(offset, f.sub(size, length)))
            f.ret_if(inside, f.add(f.module.symbol("ram"), f.add(offset, physical)))
        if isa.paging.tables is None:
            f.ret(0)
            return
        f.ret_if(f.ult(address, isa.kernel_start), 0)
        f.ret(walked(f, isa, isa.registers.kernel_root, address, length))

    return write


def _user_pointer(isa: Isa) -> Writer:
    """Write `user_pointer`: it uses the page tables that the CPU has loaded."""

    def write(f: Function, _slow: Callable[[], Word]) -> None:
        address, length = f.parameters
        for edge in (address, f.add(address, length)):
            f.ret_if(f.uge(edge, isa.kernel_start), 0)
        f.ret(walked(f, isa, isa.registers.root, address, length))

    return write


def walked(f: Function, isa: Isa, root: str, address: Word, length: Word) -> Value:
    """Return the place of bytes in a page, by the page tables of a register; 0: not mapped."""
    tables = isa.paging.tables
    assert tables is not None, isa.name
    table = f.load(f.module.symbol("cpu_words"), _WORD * isa.registers.slots[root])
    symbols = f.module.symbol("ram"), f.module.symbol("ram_end")
    walk = write_walk(f.module.function(f"{f.name}.walk", 2, local=True), tables, *symbols)
    found = f.variable(0)
    room = f.sub(PAGE, f.and_(address, PAGE - 1))
    with f.when(f.ule(length, room), likely=True):
        found.set(f.call(walk, table, address))
    return found.get()


def _filled(f: Function, _slow: Callable[[], Word]) -> None:
    """Write `user_pointer`: a page that the CPU has read is in the table of answers."""
    address, length = f.parameters
    page, offset = f.lshr(address, PAGE.bit_length() - 1), f.and_(address, PAGE - 1)
    entry = f.add(f.load(f.module.symbol("counter"), _WORD * EngineWord.FILLS), f.shl(f.and_(page, FILLS - 1), 4))
    wanted = f.or_(page, f.load(f.module.symbol("counter"), _WORD * EngineWord.GENERATION))
    answer = f.load(entry, _WORD)
    granted = f.ne(f.and_(answer, int(Access.READ)), 0)
    known = f.both(f.eq(f.load(entry), wanted), granted)
    known = f.both(known, f.both(f.ule(length, PAGE), f.ule(offset, f.sub(PAGE, length))))
    place = f.add(f.module.symbol("ram"), f.or_(f.and_(answer, ~(PAGE - 1) & WORD_MASK), offset))
    f.ret(f.select(known, place, 0))
