"""Machine code that serves a hit: it finds the tracepoint and does its steps.

`emu.engine.hits.tracepoint_blocks` documents the steps.  Python is called for enablings of a probe
without a native form, and for memory out of reach.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.engine.hits.address_table import return_found
from emu.engine.hits.hit_steps import ARGUMENTS
from emu.engine.hits.plan_code import ARGUMENT, Places, PlanCode
from emu.engine.hits.tracepoint_blocks import EVERY, Entry, Firing, Header, Step, StepKind
from emu.engine.state import DELIVER, HANDLED, Word
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Condition, Value

# Answers of `take` beside HANDLED, different from DELIVER.
ASK: Final = DELIVER + 1
LATE: Final = DELIVER + 2
# Another answer of the step CALL: the next step is done.
GO_ON: Final = DELIVER + 3
# The same: the step after it is left out.
SKIP: Final = DELIVER + 4

# `Framework.native_runs` returns the address of these: the number of pairs, and their address.
_COUNT, _PAIRS = 0, 8
# A pair: a function, and its first argument.
_RUN, _FIRST, _PAIR = 0, 8, 16
# The second word of what `remembered` remembers.
_ENTRY: Final = 8
_STEP: Final = ctypes.sizeof(Step)


@dataclass(frozen=True)
class Asked:
    """Functions in Python that the code for a hit may call."""

    load: Value
    """u64 load(address, size): the guest's memory, 0 if none is mapped there."""
    late: Value
    """i32 late(address): completes a hit whose plan needs memory out of reach; 0: it is done."""
    fired: Value
    """u64 fired(): undoes `CpuCore.prepare`, and stores an exception."""


class FiringCode:
    """The function `take`; `header` is the address of the table's `Header`."""

    def __init__(self, module: Module, isa: Isa, places: Places, plans: PlanCode, asked: Asked, header: Value) -> None:
        self._isa = isa
        self._places = places
        self._plans = plans
        self._asked = asked
        self._header = header
        self._argument = self._make_argument(module)
        self.fire = self._make_fire(module)
        self.find = self._make_find(module)
        self.remembered = self._make_remembered(module)
        self._steps = self._make_steps(module)
        self._take_entry = self._make_take_entry(module)
        self.take = self._make_take(module)
        self.serve = self._make_serve(module)

    def _make_find(self, module: Module) -> Function:
        """u64 find(address): the entry of a tracepoint, 0 if there is none."""
        f = module.function("find", 1, local=True)
        (address,) = f.parameters

        def here(entry: Value) -> Condition:
            space, thread = f.load(entry, Entry.offset("space")), f.load(entry, Entry.offset("thread"))
            return f.both(self._is(f, space, "space"), self._is(f, thread, "thread"))

        return_found(f, self._header, address, here)
        return f

    def _make_remembered(self, module: Module) -> Function:
        """u64 remembered(address, memory): as `find`, faster where the tracepoint is for everybody.

        `memory` are two words, `version` and `entry` of `emu.engine.qemu.code_hooks.HookedAddress`.
        """
        f = module.function("remembered", 2, local=True)
        address, memory = f.parameters
        version = f.load(self._header, Header.offset("version"))
        with f.when(f.eq(f.load(memory), version), likely=True):
            known = f.load(memory, _ENTRY)
            f.ret_if(f.ne(known, 0), known, likely=True)
        entry = f.call(self.find, address)
        f.ret_if(f.eq(entry, 0), 0)
        # In user mode another address space, or another thread, may have another tracepoint there.
        f.ret_if(f.ult(address, self._isa.kernel_start), entry)
        for name in ("space", "thread"):
            f.ret_if(f.ne(f.load(entry, Entry.offset(name)), EVERY), entry)
        f.store(memory, version)
        f.store(memory, entry, _ENTRY)
        f.ret(entry)
        return f

    def _is(self, f: Function, wanted: Value, name: str) -> Condition:
        """Return whether an entry is for the current address space, or the current thread."""
        now = f.load(f.load(self._header, Header.offset(name)))
        return f.either(f.eq(wanted, EVERY), f.eq(wanted, now))

    def _make_argument(self, module: Module) -> Function:
        """u64 argument(firing, number): an argument, in the guest's memory or elsewhere."""
        f = module.function("argument", 2)
        firing, number = f.parameters
        at = f.add(firing, f.shl(number, 3))
        found = f.variable(f.load(f.load(at, Firing.offset("place0"))))
        size = f.load(at, Firing.offset("size0"))
        with f.when(f.ne(size, 0)):
            address = f.and_(f.add(found.get(), f.load(at, Firing.offset("offset0"))), self._isa.address_mask)
            place = f.call(self._plans.reach, address, ARGUMENT)
            with f.choice(f.eq(place, 0), likely=False) as (out, near):
                with out:
                    found.set(f.call(self._asked.load, address, size))
                with near:
                    found.set(f.load(place))
        unused = f.load(at, Firing.offset("unused0"))
        upper = f.shl(found.get(), unused)
        signed = f.ne(f.load(at, Firing.offset("signed0")), 0)
        f.ret(f.select(signed, f.ashr(upper, unused), f.lshr(upper, unused)))
        return f

    def _make_fire(self, module: Module) -> Function:
        """u64 fire(firing, core): run a probe's enablings; 0: one of them failed."""
        f = module.function("fire", 2)
        firing, core = f.parameters
        runs = f.load(firing, Firing.offset("runs"))
        count = f.load(runs, _COUNT)
        f.ret_if(f.eq(count, 0), 1, likely=False)
        arguments = f.buffer(8 * ARGUMENTS)
        with f.choice(f.ne(f.load(firing, Firing.offset("simple")), 0)) as (plain, mixed):
            with plain:
                for number in range(ARGUMENTS):
                    place = f.load(firing, Firing.offset("place0") + 8 * number)
                    f.store(arguments, f.load(place), 8 * number)
            with mixed:
                for number in range(ARGUMENTS):
                    f.store(arguments, f.call(self._argument, firing, number), 8 * number)
        outer = f.load(core, 8 * CoreWord.FIRING)
        f.store(core, f.mul(firing, f.load(firing, Firing.offset("trap"))), 8 * CoreWord.FIRING)
        flags = f.load(firing, Firing.offset("flags"))
        with f.when(f.ne(flags, 0), likely=False):
            f.store(core, f.or_(f.load(core, 8 * CoreWord.FLAGS), flags), 8 * CoreWord.FLAGS)
        pair, failed = f.variable(f.load(runs, _PAIRS)), f.variable(0)
        end = f.add(pair.get(), f.mul(count, _PAIR))
        with f.loop() as loop:
            f.call(f.load(pair.get(), _RUN), f.load(pair.get(), _FIRST), arguments, core)
            failed.set(f.load(core, 8 * CoreWord.FAILED))
            loop.leave_if(f.ne(failed.get(), 0))
            pair.set(f.add(pair.get(), _PAIR))
            loop.leave_if(f.uge(pair.get(), end))
        with f.when(f.ne(flags, 0), likely=False):
            f.store(core, f.and_(f.load(core, 8 * CoreWord.FLAGS), f.not_(flags)), 8 * CoreWord.FLAGS)
        entered = f.or_(failed.get(), f.load(core, 8 * CoreWord.PREPARED))
        with f.when(f.ne(entered, 0), likely=False):
            f.call(self._asked.fired)
        f.store(core, outer, 8 * CoreWord.FIRING)
        f.ret(f.flag(f.eq(failed.get(), 0)))
        return f

    def _make_steps(self, module: Module) -> Function:
        """u64 steps(entry): do the steps, and return the same as `take`."""
        f = module.function("steps", 1, local=True)
        (entry,) = f.parameters
        core = f.load(entry, Entry.offset("core"))
        f.store(core, self._places.env, 8 * CoreWord.ENV)
        step = f.variable(f.load(entry, Entry.offset("steps")))
        with f.loop() as loop:
            here = step.get()
            kind, what = f.load(here, Step.offset("kind")), f.load(here, Step.offset("what"))
            loop.leave_if(f.eq(kind, 0))
            step.set(f.add(here, _STEP))
            with f.cases(kind) as case:
                with case(StepKind.RUN):
                    done = f.call(self._plans.plan, what)
                    with f.when(f.eq(done, 0), likely=False):
                        f.ret(f.select(f.eq(f.load(self._places.words, 8 * Word.REFUSED), 0), LATE, HANDLED))
                with case(StepKind.CALL):
                    answer = f.call(f.load(here, Step.offset("function")), what, core)
                    with f.when(f.eq(answer, SKIP)):
                        step.set(f.add(here, 2 * _STEP))
                        loop.again()
                    f.ret_if(f.ne(answer, GO_ON), answer)
                with case(StepKind.FIRE, StepKind.FIRE_AFTER, StepKind.FIRE_WHEN):
                    wanted = f.label()
                    f.branch_to(f.eq(kind, StepKind.FIRE), wanted)
                    size = f.load(here, Step.offset("size"))
                    led = f.and_(f.load(f.load(here, Step.offset("pc"))), self._isa.address_mask)
                    inside = f.flag(f.ult(f.sub(led, f.load(here, Step.offset("function"))), size))
                    # FIRE_WHEN is treated as a pc that is in a function of one byte.
                    loop.again_if(f.eq(inside, f.flag(f.eq(kind, StepKind.FIRE_AFTER))))
                    f.at(wanted)
                    f.ret_if(f.eq(f.call(self.fire, what, core), 0), HANDLED, likely=False)
        f.ret(HANDLED)
        return f

    def _make_take(self, module: Module) -> Function:
        """u64 take(address): serve a hit; ASK: Python must serve it, LATE: Python must complete it."""
        f = module.function("take", 1)
        entry = f.call(self.find, f.parameters[0])
        f.ret_if(f.eq(entry, 0), ASK)
        f.ret(f.call(self._take_entry, entry))
        return f

    def _make_take_entry(self, module: Module) -> Function:
        """u64 take_entry(entry): the same for a tracepoint that was found."""
        f = module.function("take_entry", 1, local=True)
        (entry,) = f.parameters
        # No probe may have fired before it is known that Python need not fire another one.
        step = f.variable(f.load(entry, Entry.offset("steps")))
        with f.loop() as loop:
            here = step.get()
            kind = f.load(here, Step.offset("kind"))
            loop.leave_if(f.eq(kind, 0))
            step.set(f.add(here, _STEP))
            loop.again_if(f.either(f.eq(kind, StepKind.RUN), f.eq(kind, StepKind.CALL)))
            with f.when(f.eq(kind, StepKind.FIRE_WHEN)):
                value = f.and_(f.load(f.load(here, Step.offset("pc"))), self._isa.address_mask)
                loop.again_if(f.ne(value, f.load(here, Step.offset("function"))))
            runs = f.load(f.load(here, Step.offset("what")), Firing.offset("runs"))
            f.ret_if(f.eq(f.load(runs, _COUNT), 0), ASK, likely=False)
        served = f.load(self._places.words, 8 * Word.SERVED)
        f.store(self._places.words, f.add(served, 1), 8 * Word.SERVED)
        depth = f.add(self._header, Header.offset("depth"))
        f.store(depth, f.add(f.load(depth), 1))
        answer = f.call(self._steps, entry)
        f.store(depth, f.sub(f.load(depth), 1))
        f.ret(answer)
        return f

    def _make_serve(self, module: Module) -> Function:
        """u64 serve(address, entry): serve a hit before its exception; 0: that must be raised."""
        f = module.function("serve", 2, local=True)
        address, entry = f.parameters
        pc, block = self._isa.registers.slots[self._isa.registers.pc], f.load(self._places.words, 8 * Word.BLOCK)
        # A breakpoint ends its block, and counts as the instruction it displaced.
        f.store(self._places.words, 0, 8 * Word.BLOCK)
        f.store(self._places.env, address, 8 * pc)
        answer = f.call(self._take_entry, entry)
        f.ret_if(f.eq(answer, HANDLED), 1, likely=True)
        with f.when(f.eq(answer, LATE)):
            wanted = f.low(f.call(self._asked.late, address), 4)
            f.ret_if(f.eq(wanted, HANDLED), 1)
            f.store(self._places.words, 1, 8 * Word.UNCLAIMED)
        f.store(self._places.words, block, 8 * Word.BLOCK)
        f.ret(0)
        return f
