"""Plans carried out natively do what `interpret` does, and leave to Python what they cannot reach."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.displaced.plans import Branch, Check, Clear, Compare, Load, Plan, Set, SetVector, Store, Sum
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.engine import native_callbacks
from emu.engine.hits.plan_encoding import WINDOWS
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.guest.function import STACK, FunctionFaultError, FunctionGuest
from emu.guest.modules import Module
from emu.isa import ISAS
from emu.probe.execute_plan import interpret
from providers.fbt import FBT
from tests.emu.code import LOOP
from tests.providers.fbt.fakes import FakeFramework

pytestmark = pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
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


def execute(guest, plan):
    """Make machine code carry a plan out; return whether it could."""
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
    interpret(plan, isa, python.engine, python.engine.pc)
    assert execute(machine, plan)
    assert state(machine) == state(python)


@isas
def test_memory_out_of_reach_leaves_the_registers_alone(isa):
    guest = prepared(isa)
    guest.engine.write_register(isa.registers.sp, 0x123_4560)
    before = state(guest)
    assert not execute(guest, plans(isa)[1])
    assert state(guest) == before


@isas
def test_an_access_that_leaves_its_window_is_out_of_reach(isa):
    guest = prepared(isa)
    guest.engine.write_register(isa.registers.sp, STACK - 4)
    assert not execute(guest, plans(isa)[4])


def general(isa):
    """Registers that a plan may use without consequences."""
    fixed = {isa.registers.sp, isa.registers.zero, isa.registers.pc, isa.registers.root, isa.registers.kernel_root}
    return [name for name in isa.registers.dtrace if name in isa.registers.slots and name not in fixed]


@st.composite
def random_plans(draw, isa):
    """What can fault comes first; then registers change, and at the end the pc or a vector."""
    names, sp, pc = general(isa), isa.registers.sp, isa.registers.pc
    temporaries: list[str] = []
    small = st.integers(-64, 64)
    operands = st.deferred(lambda: st.sampled_from([*names, *temporaries, "", pc, sp]))

    def operation(target):
        return st.one_of(
            st.builds(Set, st.just(target), operands, st.integers(-(1 << 31), 1 << 31)),
            st.builds(Clear, st.just(target), operands, st.integers(0, 255)),
            st.builds(Sum, st.just(target), operands, operands, st.integers(0, 3), small),
        )

    sizes = st.sampled_from([size for size in (1, 2, 4, 8) if size <= isa.word])
    operations = []
    for number in range(draw(st.integers(0, 4))):
        fresh = f"%{number}"
        kind = draw(st.integers(0, 2))
        if kind == 0:
            operations.append(Load(fresh, sp, draw(small), draw(sizes), draw(st.booleans())))
        elif kind == 1:
            operations.append(Store(draw(operands), sp, draw(small), draw(sizes)))
            continue
        else:
            operations.append(draw(operation(fresh)))
        temporaries.append(fresh)
    targets = draw(st.lists(st.sampled_from(names), max_size=3))
    operations.extend(draw(operation(target)) for target in targets)
    end = draw(st.integers(0, 2))
    if end == 0:
        operations.append(Branch(tuple(draw(st.lists(checks(isa, operands), max_size=2))), draw(small), draw(small)))
    elif end == 1:
        operations.append(SetVector(draw(st.integers(0, 7)), draw(operands), draw(operands)))
        operations.append(Set(pc, pc, 4))
    else:
        operations.append(draw(operation(pc)))
    return Plan(tuple(operations))


def checks(isa, operands):
    compares = [compare for compare in Compare if compare is not Compare.FLAGS]
    bits = st.sampled_from((32, 64) if isa.word == 8 else (16, 32))
    compared = st.builds(Check, st.sampled_from(compares), operands, st.one_of(operands, st.integers(0, 31)), bits)
    compared = compared.filter(
        lambda test: test.compare not in {Compare.BIT_SET, Compare.BIT_CLEAR} or isinstance(test.right, int)
    )
    if isa.condition is None:
        return compared
    return st.one_of(compared, st.integers(0, 15).map(lambda number: Check(Compare.FLAGS, right=number)))


@pytest.fixture(scope="module")
def pairs():
    """Two guests of each ISA: one for each executor."""
    return {name: (prepared(isa), prepared(isa)) for name, isa in ISAS.items()}


@isas
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_plan_does_natively_what_it_means(isa, pairs, data):
    plan = data.draw(random_plans(isa))
    values = data.draw(st.lists(st.integers(0, isa.address_mask), min_size=4, max_size=4))
    flags = data.draw(st.sampled_from(isa.traps.states))
    for guest in pairs[isa.name]:
        for number, name in enumerate(general(isa)):
            guest.engine.write_register(name, values[number % 4] + number // 4 & isa.address_mask)
        guest.engine.write_register(isa.registers.sp, SP)
        guest.engine.write_register(isa.registers.pc, 0x10000)
        for place in range(-16, 17):
            guest.engine.store(SP + 8 * place, 8, values[place % 4] ^ 0x1111 * (place + 16))
        if isa.traps.flags:
            guest.engine.write_register(isa.traps.flags, flags)
    python, machine = pairs[isa.name]
    interpret(plan, isa, python.engine, python.engine.pc)
    assert execute(machine, plan), plan
    assert state(machine) == state(python), plan
    assert [bytes(view) for view in machine.engine.cpu.vectors()] == [
        bytes(view) for view in python.engine.cpu.vectors()
    ]


@isas
def test_a_displaced_instruction_that_faults_is_reported_by_python(isa):
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
        reached.append(execute(guest, plan))
    assert reached[-WINDOWS:] == [True] * WINDOWS
    assert not reached[0]
