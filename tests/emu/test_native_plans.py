"""Plans carried out natively do what `interpret` does, and leave to Python what they cannot reach."""

from __future__ import annotations

import pytest

from emu.elf_symbols import Binding, Symbol, SymbolType
from emu.engine import native
from emu.engine.access import Access
from emu.engine.pages import PAGE, PageMap
from emu.engine.plans import WINDOWS
from emu.guest.function import STACK, FunctionFaultError, FunctionGuest
from emu.guest.modules import Module
from emu.isa import ISAS
from emu.plan_execution import interpret
from emu.plans import Clear, Load, Plan, Set, Store
from providers.fbt import FBT
from tests.providers.fbt.fakes import FakeFramework

from .code import LOOP

pytestmark = pytest.mark.skipif(not native.available(), reason="llvmlite is not installed")
isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
SP = STACK - 1024


def plans(isa):
    """Plans with every operation: loads to temporaries, stores of zero, jumps, masks."""
    names = [name for name in isa.registers.dtrace if name in isa.registers.slots][:6]
    fixed = {isa.registers.sp, isa.registers.zero, isa.registers.pc}
    a, b, c = [name for name in names if name not in fixed][:3]
    sp, pc, w = isa.registers.sp, isa.registers.pc, isa.word
    return [
        Plan((Set(pc, pc, 4),)),
        Plan((Store(a, sp, -8, w), Set(sp, sp, -8), Set(pc, pc, 1))),
        Plan((Store("", sp, 16, w), Store(b, sp, 24, w), Set(sp, sp, 32), Set(pc, pc, 4))),
        Plan((
            Load("%0", sp, 0, w), Load("%1", sp, 8, w), Set(a, "%0"), Set(b, "%1"), Set(sp, sp, 16), Set(pc, pc, 4),
        )),
        Plan((Load("%0", sp, 0, w), Set(sp, sp, 8), Set(pc, "%0"))),
        Plan((Clear(pc, c, 1),)),
        Plan((Set(a, "", -5), Set(b, a, 1), Set(pc, pc, 2))),
        Plan((Set("%0", pc, 5), Store("%0", sp, -8, w), Set(sp, sp, -8), Set(pc, pc, 0x100))),
    ]  # fmt: skip


def prepared(isa):
    guest = FunctionGuest(isa, LOOP[isa.name])
    for number, name in enumerate(sorted(isa.registers.slots)):
        if name not in {isa.registers.zero, isa.registers.root, isa.registers.kernel_root}:
            guest.engine.write_register(
                name, (0x1111_0000_1111_0000 * (number % 15) + number * 0x101) & isa.address_mask
            )
    guest.engine.write_register(isa.registers.sp, SP)
    guest.engine.write_register(isa.registers.pc, 0x10000)
    for place in range(8):
        guest.engine.store(SP - 32 + 8 * place, 8, 0xF000_0000_0000_0000 + place)
    return guest


def carry_out(guest, plan):
    """Have native code carry a plan out; tell whether it could."""
    callbacks = guest.engine.callbacks
    return callbacks.plan(guest.engine.plan(plan))


def state(guest):
    isa = guest.isa
    return {name: guest.engine.read_register(name) for name in isa.registers.slots}, guest.engine.read(SP - 64, 128)


@isas
@pytest.mark.parametrize("number", range(8))
def test_a_plan_does_natively_what_it_means(isa, number):
    plan = plans(isa)[number]
    python, machine = prepared(isa), prepared(isa)
    interpret(plan, isa, python.engine)
    assert carry_out(machine, plan)
    assert state(machine) == state(python)


@isas
def test_memory_out_of_reach_leaves_the_registers_alone(isa):
    guest = prepared(isa)
    guest.engine.write_register(isa.registers.sp, 0x123_4560)
    before = state(guest)
    assert not carry_out(guest, plans(isa)[1])
    assert state(guest) == before


@isas
def test_an_access_that_leaves_its_window_is_out_of_reach(isa):
    guest = prepared(isa)
    guest.engine.write_register(isa.registers.sp, STACK - 4)
    assert not carry_out(guest, plans(isa)[4])


@isas
def test_a_plan_of_smaller_accesses_is_pythons(isa):
    plan = Plan((Load("%0", isa.registers.sp, 0, 2), Set(isa.registers.pc, "%0")))
    assert prepared(isa).engine.plan(plan) == 0


@isas
def test_a_displaced_instruction_that_faults_is_told_by_python(isa):
    from benchmarks.code import ENTRY
    from benchmarks.code import LOOP as CALLS

    code, entry = CALLS[isa.name], ENTRY[isa.name]
    guest = FunctionGuest(isa, code)
    framework = FakeFramework()
    fbt = FBT(framework, guest.patcher, guest.traps, isa)
    symbol = Symbol("f", 0x10000 + entry, len(code) - entry, SymbolType.FUNC, Binding.GLOBAL, 1)
    fbt.provide_module(Module("kernel", (symbol,), guest.patcher.original))
    for number, (_, _, arg) in framework.probes.items():
        fbt.enable(number, arg)
    framework.on_fire = lambda: guest.engine.write_register(isa.registers.sp, 0x40)
    with pytest.raises(FunctionFaultError, match="cannot reach"):
        guest.call(1)


def test_runs_of_pages_are_windows_and_new_ones_come_first():
    pages = PageMap()
    changes = []
    pages.on_change = lambda: changes.append(list(pages.runs()))
    pages.map(0x10000, 3 * PAGE, Access.READ)
    pages.map(0x50000, 10, Access.READ)
    assert changes[0] == [(0x10000, 3 * PAGE, PAGE)]
    assert changes[1] == [(0x50000, PAGE, 4 * PAGE), (0x10000, 3 * PAGE, PAGE)]


def test_more_windows_than_there_is_room_for_leave_the_oldest_to_python():
    isa = ISAS["x86_64"]
    guest = FunctionGuest(isa, LOOP["x86_64"])
    places = [guest.allocate(64) for _ in range(WINDOWS + 2)]
    plan = Plan((Store("rbp", "rsp"), Set("rip", "rip", 1)))
    reached = []
    for place in places:
        guest.engine.write_register("rsp", place)
        reached.append(carry_out(guest, plan))
    assert reached[-WINDOWS:] == [True] * WINDOWS
    assert not reached[0]
