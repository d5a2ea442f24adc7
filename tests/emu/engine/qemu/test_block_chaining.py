"""Ends of blocks that jump to one block: that they do, and never to one that has been dropped."""

from __future__ import annotations

import ctypes

import pytest

from emu.engine.memory.pages import PAGE, Access
from emu.engine.qemu import block_chaining, jump_cache
from emu.engine.qemu.block_chaining import ENTRIES, ENTRY, JUMP, OFTEN
from emu.engine.state import Word
from tests.emu.engine.qemu import test_jump_cache
from tests.emu.engine.qemu.test_jump_cache import BACK, CODE, LOOP, OTHER, STORE, TURNS, Machine, isas

pytestmark = test_jump_cache.pytestmark

# cmpl $..,..(%rbp)
COMPARE = bytes.fromhex("81bd")
JUMP_BACK = 0xE9
# Where code is whose addresses are no signed numbers of 32 bits.
HIGH = {"x86_64": 0x7F12_3456_0000, "aarch64": 0x7F12_3456_0000, "riscv64": 0x3F_1234_5000, "i386": 0xF712_3000}


def ends(machine):
    """Return the linked ends: where they lead, how often they were asked about, their code, the end of the old call."""
    table = machine.engine.counter.state[Word.LINKS]
    words = memoryview(ctypes.string_at(table, ENTRIES * ENTRY)).cast("Q")
    found = {}
    for place in range(0, len(words), ENTRY // 8):
        if words[place]:
            start, pc, times, end = words[place : place + 4]
            found[pc] = times, ctypes.string_at(start, 32), end
    return found


def linked(machine, pc=LOOP):
    """Return whether the end that leads to an address is a jump."""
    return pc in ends(machine) and ends(machine)[pc][1].startswith(COMPARE)


@isas
def test_an_end_that_leads_to_another_page_becomes_a_jump(isa):
    machine = Machine(isa)
    before = machine.engine.instructions
    assert machine.sum() == TURNS
    assert linked(machine)
    assert 4 * TURNS <= machine.engine.instructions - before <= 4 * TURNS + 1
    assert ends(machine)[LOOP][0] == 0


@isas
def test_it_is_so_in_engines_whose_code_is_far_from_the_library(isa):
    """The more engines there are, the farther their code is."""
    machines = [Machine(isa) for _ in range(4)]
    assert [machine.sum() for machine in machines] == [TURNS] * 4
    assert all(map(linked, machines))


@isas
def test_addresses_that_are_no_signed_numbers_of_32_bits(isa):
    machine, start = Machine(isa), HIGH[isa]
    code = machine.engine.read(CODE, 4 * PAGE)
    machine.space.map(start, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
    machine.engine.write_code(start, code)
    assert machine.sum(start + BACK - CODE) == TURNS
    assert linked(machine, start + LOOP - CODE)
    for turn in range(1, OFTEN + 2):
        new = (machine.two, machine.one)[turn % 2]
        machine.engine.write_code(start + LOOP - CODE, new)
        assert machine.sum(start + BACK - CODE) == (TURNS, 2 * TURNS)[new == machine.two]
    assert not linked(machine, start + LOOP - CODE)


@isas
def test_code_that_is_written_runs_and_the_jump_leads_there(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.write_code(LOOP, machine.two)
    assert machine.sum() == 2 * TURNS
    assert linked(machine)
    times = ends(machine)[LOOP][0]
    machine.engine.write_code(LOOP, machine.one)
    assert machine.sum(STORE) == 2 * TURNS  # the program writes the other one
    assert machine.sum() == 2 * TURNS
    assert ends(machine)[LOOP][0] > times


@isas
@pytest.mark.parametrize("whole", [False, True])
def test_a_page_that_is_mapped_elsewhere_is_found_by_the_jump(isa, whole):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    frames = machine.space.frames
    places = frames[LOOP // PAGE], frames[OTHER // PAGE]
    for turn in range(OFTEN + 3):
        frames[LOOP // PAGE] = places[turn % 2]
        machine.forget(whole=whole)
        assert machine.sum() == (1 + turn % 2) * TURNS
        assert linked(machine) == (turn < OFTEN - 1)


@isas
def test_an_end_that_was_asked_about_often_gets_its_old_code_back(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.flush_page(LOOP)
    for _ in range(OFTEN):
        machine.engine.flush_page(LOOP)
        assert machine.sum() == TURNS
    times, code, end = ends(machine)[LOOP]
    assert times == OFTEN
    assert code[end - 5] == JUMP_BACK
    assert code[end:].startswith((b"\xff\xe0", b"\x90\xff\xe0"))
    machine.engine.write_code(LOOP, machine.two)
    assert machine.sum() == 2 * TURNS


@isas
def test_when_all_blocks_are_dropped_no_end_is_known(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.memory.write(LOOP, machine.two)
    machine.engine.cpu.uc.ctl_flush_tb()
    assert machine.sum() == 2 * TURNS
    assert set(ends(machine)) <= {LOOP, BACK}


@isas
def test_a_block_below_others_that_is_entered_late_changes_no_end(isa):
    """It looks as if QEMU had begun at the start of its memory again."""
    machine = Machine(isa)
    state = machine.engine.counter.state
    assert machine.sum() == TURNS
    state[Word.LATEST] = jump_cache.FORGOTTEN
    assert machine.sum(STORE) == 2 * TURNS
    machine.engine.flush_page(LOOP)
    assert machine.sum() == 2 * TURNS
    assert linked(machine)


@isas
def test_when_the_engine_translates_all_anew_the_table_is_empty(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.counter.translate_anew()
    assert not ends(machine)
    assert machine.sum() == TURNS
    assert linked(machine)


@isas
def test_a_count_that_is_too_far_links_nothing(isa, monkeypatch):
    monkeypatch.setattr(block_chaining, "_OFFSET", 0)
    machine = Machine(isa)
    assert machine.engine.counter.state[Word.LINKS] == 0
    assert (machine.sum(), machine.sum(STORE)) == (TURNS, 2 * TURNS)


@isas
def test_a_full_table_links_nothing_more(isa):
    machine = Machine(isa)
    table, other = machine.engine.counter.state[Word.LINKS], ctypes.create_string_buffer(64)
    for place in range(table, table + ENTRIES * ENTRY, ENTRY):
        ctypes.c_uint64.from_address(place).value = ctypes.addressof(other)
    assert (machine.sum(), machine.sum(STORE)) == (TURNS, 2 * TURNS)
    assert LOOP not in ends(machine)


@isas
def test_runs_of_some_instructions_end_where_they_would_without_a_jump(isa, monkeypatch):
    machines = [Machine(isa)]
    monkeypatch.setattr(block_chaining, "_OFFSET", 0)
    machines.append(Machine(isa))
    assert [machine.sum() for machine in machines] == [TURNS] * 2
    assert linked(machines[0])
    seen = []
    for machine in machines:
        for name, value in zip(machine.registers, (0, TURNS, 0, LOOP), strict=True):
            machine.engine.write_register(name, value)
        machine.engine.pc = BACK
        start, places = machine.engine.instructions, []
        for number in range(3, 40, 3):
            machine.engine.run(hard=start + number)
            sum_ = machine.engine.read_register(machine.registers[0])
            places.append((machine.engine.pc, sum_, machine.engine.instructions - start))
        seen.append(places)
    assert seen[0] == seen[1]
    assert seen[0][-1][1]


def test_a_jump_fits_into_the_shortest_end():
    """movq $pc,PC(%rbp)    mov %rbp,%rdi    call ...    jmp *%rax"""
    assert JUMP == 11 + 3 + 5 + 2
