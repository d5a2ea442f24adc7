"""Machine code for `emu.engine.hits.watched`: calls of probes, code that takes no time.

Its behaviour is documented in `emu.engine.time.clock`, `emu.guest.kernel.traced` and
`emu.guest.kernel.gates`.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.engine.hits.firing_code import FiringCode
from emu.engine.hits.plan_code import READ, Places, PlanCode
from emu.engine.hits.tracepoint_blocks import Firing
from emu.engine.hits.watched import Calls, Hooked, Stretch, Turn, Watched, WatchKind
from emu.engine.state import TableEntry, Word
from emu.engine.time.clock_words import ClockWord
from emu.engine.time.counter import PREPAID
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Value

# Bytes of a result that is a pair of registers where words have four.
_LONG: Final = 8
_ID: Final = 0xFFFF_FFFF


class WatchedCode:
    """The function `watched`; `hooked` is the address of `Hooked`, `left` corrects the count."""

    def __init__(
        self, module: Module, isa: Isa, places: Places, plans: PlanCode, firing: FiringCode, hooked: Value, left: Value
    ) -> None:
        self._isa = isa
        self._places = places
        self._plans = plans
        self._firing = firing
        self._hooked = hooked
        self._left = left
        self._count = self._make_count(module)
        self._call = self._make_call(module)
        self._make_watched(module)

    def _make_count(self, module: Module) -> Function:
        """u64 count(watched): the instructions executed so far; all ones: unknown here."""
        f = module.function("count", 1, local=True)
        (watched,) = f.parameters
        entry = f.load(self._places.words, 8 * Word.BLOCK)
        f.ret_if(f.eq(entry, 0), -1, likely=False)
        known = f.load(watched, Watched.offset("block"))
        f.ret_if(f.ne(f.load(entry, TableEntry.address.offset), known), -1, likely=False)
        before = f.sub(f.load(self._places.words, 8 * Word.TOTAL), f.load(entry, TableEntry.count.offset, 4))
        f.ret(f.add(f.sub(before, PREPAID), f.load(watched, Watched.offset("index"))))
        return f

    def _make_call(self, module: Module) -> Function:
        """u64 called(watched): fire the probe that the kernel calls; 0: Python must fire it."""
        f = module.function("called", 1, local=True)
        calls = f.load(f.parameters[0], Watched.offset("calls"))
        number = f.and_(self._first_argument(f), _ID)
        f.ret_if(f.uge(number, f.load(calls, Calls.offset("limit"))), 0, likely=False)
        firing = f.load(f.load(calls, Calls.offset("firings")), f.shl(number, 3))
        f.ret_if(f.eq(firing, 0), 0, likely=False)
        f.ret_if(f.eq(f.load(f.load(firing, Firing.offset("runs"))), 0), 0, likely=False)
        core, frames = f.load(calls, Calls.offset("core")), f.load(calls, Calls.offset("frames"))
        f.store(core, self._places.env, 8 * CoreWord.ENV)
        f.store(frames, f.load(firing, Firing.offset("frames")))
        f.store(core, firing, 8 * CoreWord.CALLED)
        f.store(self._hooked, 1, Hooked.offset("inside"))
        f.call(self._firing.fire, firing, core)
        f.store(core, 0, 8 * CoreWord.CALLED)
        f.store(self._hooked, 0, Hooked.offset("inside"))
        f.store(frames, 0)
        with f.when(f.ne(f.load(self._hooked, Hooked.offset("left")), 0), likely=False):
            f.call(self._left)
        f.ret(1)
        return f

    def _first_argument(self, f: Function) -> Value:
        """Return the first argument of a function; give up if memory is out of reach."""
        slots, calling = self._isa.registers.slots, self._isa.calling
        if calling.arguments:
            return f.load(self._places.env, 8 * slots[calling.arguments[0]])
        address = f.add(f.load(self._places.env, 8 * slots[self._isa.registers.sp]), calling.stack_arguments)
        place = f.call(self._plans.reach, address, READ)
        f.ret_if(f.eq(place, 0), 0, likely=False)
        return f.load(place, 0, self._isa.word)

    def _answer(self, f: Function, result: Value) -> None:
        """Set the result registers of a function whose result has 64 bits."""
        slots, results = self._isa.registers.slots, self._isa.calling.results
        f.store(self._places.env, f.and_(result, self._isa.address_mask), 8 * slots[results[0]])
        if self._isa.word < _LONG:
            f.store(self._places.env, f.lshr(result, 8 * self._isa.word), 8 * slots[results[1]])

    def _time(self, f: Function, count: Value) -> Value:
        """Return the time at a count of instructions, while the clock runs; for the hook."""
        watched = f.parameters[3]
        clock = f.load(watched, Watched.offset("clock"))
        passed = f.sub(count, f.load(clock, 8 * ClockWord.HIDDEN))
        time = f.mul(passed, f.load(watched, Watched.offset("period")))
        return f.add(time, f.load(clock, 8 * ClockWord.SKIPPED))

    def _make_watched(self, module: Module) -> None:
        """Void watched(uc, address, size, watched): the hook."""
        f = module.function("watched", 4)
        uc, address, size, watched = f.parameters
        python, paused = f.label(), f.label()
        f.branch_to(f.ne(f.load(self._hooked, Hooked.offset("left")), 0), python)
        clock, stretch = f.load(watched, Watched.offset("clock")), f.load(watched, Watched.offset("stretch"))
        with f.cases(f.load(watched, Watched.offset("kind"))) as case:
            with case(WatchKind.PAUSE):
                f.branch_to(f.ne(f.load(clock, 8 * ClockWord.STANDS), 0), paused)
                count = f.call(self._count, watched)
                f.branch_to(f.eq(count, -1), python)
                f.store(clock, count, 8 * ClockWord.PAUSED)
                f.store(clock, 1, 8 * ClockWord.STANDS)
                f.at(paused)
                f.store(stretch, f.load(watched, Watched.offset("owed")), Stretch.offset("owed"))
                f.store(stretch, 1, Stretch.offset("inside"))
                f.ret()
            with case(WatchKind.RESUME):
                with f.when(f.ne(f.load(clock, 8 * ClockWord.STANDS), 0), likely=True):
                    count = f.call(self._count, watched)
                    f.branch_to(f.eq(count, -1), python)
                    # The jump itself still belongs to the code that takes no time.
                    extra = f.sub(1, f.load(stretch, Stretch.offset("owed")))
                    passed = f.sub(f.add(count, extra), f.load(clock, 8 * ClockWord.PAUSED))
                    f.store(clock, f.add(f.load(clock, 8 * ClockWord.HIDDEN), passed), 8 * ClockWord.HIDDEN)
                    f.store(clock, 0, 8 * ClockWord.STANDS)
                f.store(stretch, 0, Stretch.offset("inside"))
                f.ret()
            with case(WatchKind.CALL):
                f.ret_if(f.ne(f.call(self._call, watched), 0))
            with case(WatchKind.TIME):
                now = f.variable(f.load(clock, 8 * ClockWord.PAUSED))
                with f.when(f.eq(f.load(clock, 8 * ClockWord.STANDS), 0), likely=True):
                    now.set(f.call(self._count, watched))
                    f.branch_to(f.eq(now.get(), -1), python)
                self._answer(f, self._time(f, now.get()))
                f.ret()
            with case(WatchKind.TURN):
                f.ret_if(f.ne(f.load(clock, 8 * ClockWord.STANDS), 0), likely=False)
                count = f.call(self._count, watched)
                f.branch_to(f.eq(count, -1), python)
                turn = f.load(watched, Watched.offset("turn"))
                f.ret_if(f.ult(self._time(f, count), f.load(turn, Turn.offset("until"))))
                f.store(turn, 1, Turn.offset("over"))
                for word in (Word.HARD, Word.NEXT):  # as `Engine.stop` does
                    f.store(self._places.words, 0, 8 * word)
                f.ret()
        f.at(python)
        f.call(f.load(watched, Watched.offset("python")), uc, address, size, watched)
        f.ret()
