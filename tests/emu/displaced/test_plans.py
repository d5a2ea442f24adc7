"""Plans: valid ones, what a CPU does, and faults without effects."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emu.displaced.plans import Clear, Load, Plan, Set, Store
from emu.isa import ISAS
from emu.support.words import BadAddressError
from tests.emu.displaced.ins import CODE, ISA_NAMES
from tests.emu.displaced.machines import PlanMachine, RealMachine, register_names

every_isa = pytest.mark.parametrize("isa", [ISAS[name] for name in ISA_NAMES], ids=ISA_NAMES)


@every_isa
def test_plans_of_equal_fields_are_not_taken_for_each_other(isa):
    first = register_names(isa)[0]
    plans = (Plan((Set(first, first, 7),)), Plan((Clear(first, first, 7),)))
    assert plans[0] != plans[1]
    assert len({*plans}) == 2


@every_isa
def test_a_fault_leaves_every_register_as_it_was(isa):
    faulting = 0
    for row in isa.stub.rows:
        plan = isa.stub.plan(row.value.to_bytes(8, "little"), CODE)
        if plan is None or not any(isinstance(operation, (Load, Store)) for operation in plan.operations):
            continue
        machine = PlanMachine(isa)
        for number, name in enumerate(register_names(isa)):
            machine.write_register(name, 0x10000 * (number + 1))
        machine.unmapped = range(0x100_0000)
        before = bytes(machine.words)
        with pytest.raises(BadAddressError):
            machine.run(plan)
        assert bytes(machine.words) == before
        faulting += 1
    assert faulting


def test_a_second_store_that_faults_leaves_the_registers_as_they_were():
    machine = PlanMachine(ISAS["aarch64"])
    machine.write_register("sp", 0x20000)
    machine.unmapped = range(0x1FFF8, 0x20000)
    with pytest.raises(BadAddressError, match="0x1fff8"):
        machine.run(ISAS["aarch64"].stub.plan(bytes.fromhex("fd7bbfa9"), CODE))
    assert machine.read_register("sp") == 0x20000


@pytest.mark.parametrize(
    "operations",
    [
        (Set("rsp", "rsp", -8), Store("rbp", "rsp")),
        (Clear("rsp", "rsp", 7), Load("%0", "rsp")),
        (Load("rbp", "rsp"),),
    ],
)
def test_an_operation_that_may_fault_after_a_register_was_written_makes_no_plan(operations):
    with pytest.raises(ValueError, match=r"fault after a register was written|loads into a register"):
        Plan(operations)


def test_plans_read_as_words():
    plan = Plan(
        (Load("%0", "sp", 8), Store("", "sp", -8), Set("sp", "sp", -16), Clear("pc", "ra", 1), Set("x0", "", 5))
    )
    assert str(plan) == "%0 = [sp+8]; [sp-8] = 0; sp = sp-16; pc = ra & ~0x1; x0 = 0x5"
    assert str(Plan(())) == "does nothing and does not advance the pc"


def test_the_x86_stub_goes_by_the_code_and_not_by_the_instruction():
    table = ISAS["x86_64"].stub
    assert str(table.invop(5, 0x55, CODE)) == "%0 = [rsp]; rsp = rsp+8; rip = %0"


@pytest.mark.parametrize(("isa", "rval"), [
    ("x86_64", 0),  # nobody claimed it
    ("x86_64", 2),  # pop ebp: the i386 stub's
    ("x86_64", 7),  # no such code
    ("i386", 5),  # ret: the amd64 stub's
    ("i386", 6),  # call: the amd64 stub's
    ("aarch64", 0),
    ("aarch64", 1),  # a code is no answer where the word is expected
    ("aarch64", 0x17FFFFFF),  # b, backward
    ("riscv64", 0),
    ("riscv64", 0x00813423),  # sd s0, 8(sp)
])  # fmt: skip
def test_the_stub_does_not_claim_an_answer_it_does_not_know(isa, rval):
    assert ISAS[isa].stub.invop(rval, 0x55, CODE) is None


def test_riscv_looks_at_the_whole_word_before_it_looks_at_its_half():
    # The upper half is whatever follows a compressed instruction, so it may be anything there.
    table = ISAS["riscv64"].stub
    assert str(table.invop(0xFFFF_E406, 0, CODE)) == "[sp+8] = ra; pc = pc+2"
    assert str(table.invop(0x8082_8082, 0, CODE)) == "pc = ra & ~0x1"


def _exact(isa_name, row, word):
    """Whether FreeBSD's emulation of this word is exact: the operands it assumes are the real ones."""
    match isa_name, row.code or row.name:
        case "aarch64", "STP" | "ldp xt1, xt2, [sp], #imm":
            first, second = word & 31, word >> 10 & 31
            return word >> 5 & 31 == 31 and first != second
        case "aarch64", "SUB":
            return word & 31 == word >> 5 & 31 == 31
        case "riscv64", "SD":
            return word >> 31 == 0
        case "riscv64", "NOP":
            return False
    return True


@st.composite
def instructions(draw, isa):
    """Any instruction of any row that emulates: (row, word)."""
    row = draw(st.sampled_from([row for row in isa.stub.rows if callable(row.what)]))
    free = draw(st.integers(-CODE, 0x40_0000)) << 8 if row.name == "call rel32" else draw(st.integers(0, 2**32 - 1))
    return row, row.value | free & ~row.mask & (1 << 8 * row.length) - 1


@pytest.mark.parametrize("isa_name", ISA_NAMES)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_what_a_row_matches_does_on_a_cpu_what_its_plan_does(isa_name, data):
    isa, cpu = ISAS[isa_name], _cpu(isa_name)
    row, word = data.draw(instructions(isa))
    assume(_exact(isa_name, row, word))
    code = word.to_bytes(row.length, "little")
    machine = PlanMachine(isa)
    values = {name: 0x20000 + 0x4000 * number for number, name in enumerate(register_names(isa))}
    values |= {isa.registers.pc: CODE, isa.registers.sp: 0x18000 + 8 * data.draw(st.integers(0, 0x1000))}
    sp = values[isa.registers.sp]
    places = [sp - 16, sp - 8, sp, sp + 8, *(value for value in values.values() if value > CODE + 16)]
    for each in (machine, cpu):
        for name, value in values.items():
            each.write_register(name, value)
        for place in places:
            each.store(place, isa.word, 0x40000 + 4 * place)
    machine.run(isa.stub.plan(code, CODE))
    cpu.run(code)
    assert {name: machine.read_register(name) for name in values} == {name: cpu.read_register(name) for name in values}
    for place in machine.memory:
        assert machine.load(place, 1) == cpu.load(place, 1), hex(place)


@cache
def _cpu(isa_name):
    return RealMachine(ISAS[isa_name])
