"""Hits that machine code serves: the same firings in the same order, the same registers, as Python's."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from benchmarks.code import ENTRY, LOOP
from emu.displaced.cpu_core import CoreWord
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.engine.handlers import Handlers, WrappedTaker
from emu.engine.hits.firing_code import GO_ON, SKIP
from emu.engine.hits.hit_steps import Call, FireWhen
from emu.engine.hits.tracepoint_blocks import EVERY
from emu.engine.state import DELIVER, Word
from emu.guest.function import CODE, LANDING, FunctionFaultError, FunctionGuest
from emu.guest.modules import Module
from emu.isa import ISAS
from emu.native import available
from emu.native.builder import Module as CodeModule
from emu.native.link import Linked
from providers.fbt import FBT
from tests.providers.fbt.fakes import FakeFramework
from tests.support.native import Enabling, runs

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")
isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


class Traced:
    """The loop of the benchmarks with FBT in it; its probes' enablings are machine code, or Python's."""

    def __init__(self, isa, *, native=True):
        self.isa = isa
        code, entry = LOOP[isa.name], ENTRY[isa.name]
        self.guest = FunctionGuest(isa, code)
        self.framework = FakeFramework()
        self.fbt = FBT(self.framework, self.guest.patcher, self.guest.traps, isa)
        symbol = Symbol("f", CODE + entry, len(code) - entry, SymbolType.FUNC, Binding.GLOBAL, 1)
        self.module = Module("kernel", (symbol,), self.guest.patcher.original)
        self.fbt.provide_module(self.module)
        self.entry = next(record.address for record in self.fbt.table if not record.roffset)
        self.enablings = {}
        for number in self.framework.probes:
            self.enablings[number] = [Enabling(), Enabling()]
            if native:
                self.framework.native[number] = runs(*self.enablings[number])

    def enable(self, *names):
        for number, (name, _, arg) in self.framework.probes.items():
            if name.rpartition(":")[2] in names:
                self.fbt.enable(number, arg)
        return self

    def disable(self, *names):
        for number, (name, _, arg) in self.framework.probes.items():
            if name.rpartition(":")[2] in names:
                self.fbt.disable(number, arg)

    def fired(self):
        """What Python saw, and what machine code saw: (name, arguments) each."""
        names = {number: name for number, (name, _, _) in self.framework.probes.items()}
        native = [(names[number], *args) for number, pair in self.enablings.items() for args in pair[0].seen()]
        return self.framework.fired, native

    def registers(self):
        return {name: self.guest.engine.read_register(name) for name in self.isa.registers.slots}


@isas
def test_the_first_hit_is_pythons_the_others_are_machine_codes_and_nothing_else_differs(isa):
    python, machine = Traced(isa, native=False).enable("entry", "return"), Traced(isa).enable("entry", "return")
    for traced in (python, machine):
        traced.guest.call(20)
    expected, none = python.fired()
    assert not none
    first, rest = machine.fired()
    assert len(first) == 2
    assert sorted([*first, *rest]) == sorted(expected)
    assert [pair[0].count for pair in machine.enablings.values()] == [19, 19]
    assert [pair[1].count for pair in machine.enablings.values()] == [19, 19]
    assert machine.registers() == python.registers()
    assert machine.guest.engine.instructions == python.guest.engine.instructions


@isas
def test_arguments_in_reach_of_machine_code_are_not_asked_of_python(isa, monkeypatch):
    asked = []
    monkeypatch.setattr(Handlers, "load", lambda _self, address, _size: asked.append(address) or 0)
    traced = Traced(isa).enable("entry", "return")
    traced.guest.call(20)
    assert traced.enablings[next(iter(traced.enablings))][0].count == 19
    assert asked == []


@isas
def test_a_disabled_probe_is_silent_and_an_enabled_one_fires_again(isa):
    traced = Traced(isa).enable("entry", "return")
    traced.guest.call(5)
    traced.disable("entry")
    traced.guest.call(5)
    entry, leave = traced.enablings.values()
    assert (entry[0].count, leave[0].count) == (4, 8)
    traced.enable("entry")
    traced.guest.call(5)
    assert (entry[0].count, leave[0].count) == (8, 12)


@isas
def test_enablings_that_become_pythons_are_pythons_at_the_next_hit(isa):
    traced = Traced(isa).enable("entry")
    traced.guest.call(5)
    (number, *_) = traced.enablings
    words = (ctypes.c_uint64 * 2).from_address(traced.framework.native[number])
    words[0] = 0
    traced.guest.call(5)
    assert len(traced.framework.fired) == 6
    assert traced.enablings[number][0].count == 4


@isas
def test_a_handler_in_front_that_does_not_say_what_it_does_is_asked_each_time(isa):
    traced = Traced(isa).enable("entry")
    traced.guest.call(5)
    asked = []

    def handler(address, _frame, _extra):
        asked.append(address)
        return 0

    traced.guest.traps.add(handler)
    traced.guest.call(5)
    assert len(asked) == 5
    assert len(traced.framework.fired) == 6
    traced.guest.traps.remove(handler)
    traced.guest.call(5)
    assert len(asked) == 5
    assert len(traced.framework.fired) == 7


@isas
def test_who_takes_the_engines_breakpoints_sees_them_all(isa):
    traced = Traced(isa).enable("entry")
    traced.guest.call(5)
    handlers = traced.guest.engine.handlers
    seen = []

    class Watch(WrappedTaker):
        def breakpoint(self, address):
            seen.append(address)
            return super().breakpoint(address)

    handlers.taker = Watch(handlers.taker)
    traced.guest.call(5)
    assert len(seen) == 5


@isas
def test_python_code_that_a_firing_enters_finds_its_context(isa):
    traced = Traced(isa)
    core = traced.guest.traps.core
    seen = []

    def upcall(*_):
        assert core.prepare is not None
        if not core.words[CoreWord.PREPARED]:
            core.prepare()
        seen.append((core.trapframe.arguments()[0], core.find_caller is not None, core.words[CoreWord.ENV]))

    (number, *_) = traced.enablings
    enabling = Enabling(upcall)
    traced.framework.native[number] = runs(enabling)
    traced.enable("entry").guest.call(4)
    assert len(seen) == 3
    assert {env for _, _, env in seen} == {traced.guest.engine.cpu.env}
    assert [argument for argument, _, _ in seen] == [args[0] for args in enabling.seen()]
    assert core.trapframe is None
    assert core.find_caller is None
    assert not core.words[CoreWord.FIRING]
    assert not core.words[CoreWord.PREPARED]


@isas
def test_an_exception_of_that_python_code_ends_the_run(isa):
    traced = Traced(isa)
    core = traced.guest.traps.core

    def upcall(*_):
        core.prepare()
        core.words[CoreWord.FAILED] = 1

    def raise_failure():
        raise ZeroDivisionError

    core.raise_failure = raise_failure
    (number, *_) = traced.enablings
    after = Enabling()
    traced.framework.native[number] = runs(Enabling(upcall), after)
    traced.enable("entry")
    with pytest.raises(ZeroDivisionError):
        traced.guest.call(4)
    assert after.count == 0
    assert traced.guest.engine.pc == traced.entry


@isas
def test_a_displaced_instruction_that_faults_at_a_later_hit_is_reported(isa):
    traced = Traced(isa)

    def upcall(*_):
        traced.guest.engine.write_register(isa.registers.sp, 0x40)

    (number, *_) = traced.enablings
    traced.framework.native[number] = runs(Enabling(upcall))
    traced.enable("entry")
    with pytest.raises(FunctionFaultError, match="cannot reach"):
        traced.guest.call(3)
    assert traced.guest.engine.pc == traced.entry


@isas
def test_a_tracepoint_disabled_by_its_own_firing_is_gone_at_the_next_hit(isa):
    traced = Traced(isa)
    (number, *_) = traced.enablings
    ending = Enabling(lambda *_: traced.disable("entry"))
    after = Enabling()
    traced.framework.native[number] = runs(ending, after)
    traced.enable("entry").guest.call(6)
    assert (ending.count, after.count) == (1, 1)


@isas
def test_a_breakpoint_that_the_guest_has_overwritten_does_not_fire(isa):
    traced = Traced(isa).enable("entry")
    traced.guest.call(5)
    (number, *_) = traced.enablings
    engine = traced.guest.engine
    patch = engine.read(traced.entry, 4)
    original = traced.guest.patcher.original(traced.entry, 4)
    places = engine.memory.places(traced.entry, 4)
    for code, count in ((original, 4), (patch, 9)):
        # As a store of the guest's does it: no one but QEMU is told.
        engine.memory.write(traced.entry, code)
        for start, end in places:
            engine.code._forget_translation(start, end)
        traced.guest.call(5)
        assert traced.enablings[number][0].count == count


def test_the_exception_of_a_hit_that_no_one_wants_is_raised_once_and_nothing_fires_again():
    traced = Traced(ISAS["x86_64"])
    engine = traced.guest.engine
    asked = []

    def upcall(*_):
        engine.write_register("rsp", 0x40)  # so that what is displaced cannot be done by machine code
        engine.handlers.taker.late = lambda address: asked.append(address) or DELIVER

    (number, *_) = traced.enablings
    enabling = Enabling(upcall)
    traced.framework.native[number] = runs(enabling)
    traced.enable("entry")
    with pytest.raises(FunctionFaultError, match="exception 13"):  # there is no vector it could go to
        traced.guest.call(3)
    assert asked == [traced.entry]
    assert enabling.count == 1
    assert engine.counter.state[Word.UNCLAIMED] == 0


def test_ten_thousand_tracepoints_are_found_as_one_is():
    guest = FunctionGuest(ISAS["x86_64"], LOOP["x86_64"])
    tracepoints, core = guest.engine.tracepoints, guest.traps.core
    for number in range(10_000):
        tracepoints.set((0xFFFF_FFFF_8020_0000 + 16 * number, EVERY, EVERY), core, guest.host_trap.frame, ())
    table = (ctypes.c_uint64 * (tracepoints.header.mask + 1)).from_address(tracepoints.header.table)
    assert sum(map(bool, table)) == len(tracepoints) == 10_000
    # How far the furthest entry is from where its address says.
    run = longest = 0
    for word in (*table, *table):
        run = run + 1 if word else 0
        longest = max(longest, run)
    assert longest < 64
    tracepoints.clear()
    assert len(tracepoints) == 0


@isas
@pytest.mark.parametrize("distance", [0, 8])
def test_a_probe_that_waits_for_a_registers_value_fires_at_that_value_alone(isa, distance):
    traced = Traced(isa).enable("entry")
    traps, sp, values = traced.guest.traps, isa.registers.sp, []

    def handler(address, frame, extra):
        values.append(frame.register(sp))
        return traced.fbt._handler(address, frame, extra)

    def describe(address):
        hit = traced.fbt._describe(address)
        return replace(hit, steps=tuple(FireWhen(fire, sp, values[0] + distance) for fire in hit.steps))

    traps.add(handler, describe)
    traced.guest.call(5)
    assert len(values) == 1
    (number, *_) = traced.enablings
    assert traced.enablings[number][0].count == (0 if distance else 4)


@isas
@pytest.mark.parametrize("distance", [0, 8])
def test_a_probe_of_pythons_that_does_not_fire_leaves_the_others_to_machine_code(isa, distance):
    traced = Traced(isa).enable("entry")
    traps, sp, values = traced.guest.traps, isa.registers.sp, []

    def handler(address, frame, extra):
        values.append(frame.register(sp))
        return traced.fbt._handler(address, frame, extra)

    def describe(address):
        hit = traced.fbt._describe(address)
        pythons = replace(hit.steps[0], runs=runs())
        return replace(hit, steps=(*hit.steps, FireWhen(pythons, sp, values[0] + distance)))

    traps.add(handler, describe)
    traced.guest.call(5)
    (number, *_) = traced.enablings
    # What is Python's is known before another probe has fired.
    assert (len(values), traced.enablings[number][0].count) == ((1, 4) if distance else (5, 0))


@isas
def test_a_step_of_machine_code_leaves_out_the_one_after_it(isa):
    module = CodeModule()
    for name, answer in (("on", GO_ON), ("skip", SKIP)):
        module.function(name, 2).ret(answer)
    linked = Linked(module.compiled("test"))
    traced = Traced(isa).enable("entry")
    first, second = list(traced.enablings)[:2]

    def describe(address):
        (fire,) = traced.fbt._describe(address).steps
        other = replace(fire, runs=traced.framework.native[second])
        steps = (Call(linked.address("on"), 0), fire, Call(linked.address("skip"), 0), fire, other)
        return replace(traced.fbt._describe(address), steps=steps)

    traced.guest.traps.add(traced.fbt._handler, describe)
    traced.guest.call(5)
    assert [traced.enablings[number][0].count for number in (first, second)] == [4, 4]


@isas
def test_hits_in_single_steps_are_the_same(isa):
    stepped = []
    for native in (False, True):
        traced = Traced(isa, native=native).enable("entry", "return")
        traced.guest.call(3)
        traced.guest.prepare(5)
        pcs = [traced.guest.engine.pc]
        while pcs[-1] != LANDING:
            traced.guest.engine.step()
            pcs.append(traced.guest.engine.pc)
        python, machine = traced.fired()
        stepped.append((pcs, sorted([*python, *machine]), traced.registers()))
        assert len(machine) == (2 * (3 + 5 - 1) if native else 0)
    assert stepped[0] == stepped[1]
