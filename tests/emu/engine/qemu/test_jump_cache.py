"""The table of jumps: what it finds, and that it never finds a block that has been dropped."""

import ctypes

import pytest

from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.qemu import inlined_count, jump_cache
from emu.engine.qemu.cpu import Cpu
from emu.engine.state import Word
from emu.isa import ISAS
from emu.unicorn_layout import library

pytestmark = pytest.mark.skipif(
    not (native_callbacks.available() and inlined_count.POSSIBLE and library.this().is_known),
    reason="blocks are changed by machine code, on Linux and x86-64, in the known library",
)

isas = pytest.mark.parametrize("isa", ISAS)
CODE = 0x10000
BACK, LOOP, STORE, OTHER = CODE + PAGE - 8, CODE + PAGE, CODE + 2 * PAGE, CODE + 3 * PAGE
# Registers (sum, turns left, data, its address), then code: at BACK a jump to LOOP, in the next page; there 1 or 2 is
# added to the sum, and all is repeated; at STORE the data is stored, then a jump to BACK.
PROGRAMS = {
    "x86_64": (("rcx", "rdx", "rax", "rsi"), "eb06", "4883c101", "4883c102", "48ffca75ef", "8906e9f1efffff"),
    "i386": (("ecx", "edx", "eax", "esi"), "eb06", "83c1014a", "83c1024a", "75f2", "8906e9f1efffff"),
    "aarch64": (("x1", "x2", "x0", "x3"), "02000014", "21040091", "21080091", "420400f181ffff54", "600000b9fdfbff17"),
    "riscv64": (("a1", "a2", "a0", "a3"), "6f008000", "93851500", "93852500", "1306f6ffe31806fe", "23a0a6006fe05fff"),
}
TURNS = 20
# Addresses at this distance are in the same pair of entries.
FAR = PAGE * jump_cache.ENTRIES // 2
# A flag of x86 by which QEMU tells blocks apart.
AC = 1 << 18


class Machine:
    """The program, in a space of its own, after one run."""

    def __init__(self, isa):
        self.space = PageMap()
        self.space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
        self.isa = ISAS[isa]
        self.engine = Engine(self.isa, 16 * PAGE, pages=self.space, accelerated=True)
        self.registers, *parts = PROGRAMS[isa]
        back, self.one, self.two, again, store = map(bytes.fromhex, parts)
        wait = self.isa.traps.wait
        for address, code in ((BACK, back), (LOOP, self.one + again + wait), (OTHER, self.two + again + wait)):
            self.engine.write_code(address, code)
        self.engine.write_code(STORE, store)

    def sum(self, start=BACK):
        """Return the sum after a run."""
        sum_, turns, data, place = self.registers
        for name, value in ((sum_, 0), (turns, TURNS), (data, int.from_bytes(self.two, "little")), (place, LOOP)):
            self.engine.write_register(name, value)
        self.engine.pc = start
        self.engine.run()
        return self.engine.read_register(sum_)

    def forget(self, *, whole):
        """Tell the engine that the page of LOOP, or `whole`, that each page may be mapped elsewhere."""
        if whole:
            self.engine.spaces.fills(self.space).forget_all()
        else:
            self.engine.spaces.flush_page(LOOP)

    @property
    def found(self):
        """The addresses in the table."""
        table = (ctypes.c_uint64 * (2 * jump_cache.ENTRIES)).from_address(self.engine.counter.state[Word.JUMPS])
        return {address for address, code in zip(table[::2], table[1::2], strict=True) if code}


@isas
def test_a_jump_to_another_page_is_found(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    assert LOOP in machine.found
    before = machine.engine.instructions
    assert machine.sum() == TURNS
    assert 4 * TURNS <= machine.engine.instructions - before <= 4 * TURNS + 1


@isas
def test_of_jumps_with_the_same_place_the_last_two_are_known(isa):
    machine = Machine(isa)
    code = machine.engine.read(BACK, LOOP + PAGE - BACK)
    for far in (FAR, 2 * FAR):
        machine.space.map(CODE + far, 2 * PAGE, Access.READ | Access.EXECUTE)
        machine.engine.write_code(BACK + far, code)
    for far, known in ((0, {0}), (FAR, {0, FAR}), (2 * FAR, {FAR, 2 * FAR}), (0, {0, 2 * FAR})):
        assert machine.sum(BACK + far) == TURNS
        assert {LOOP + place for place in (0, FAR, 2 * FAR)} & machine.found == {LOOP + place for place in known}


@isas
def test_code_that_the_program_writes_runs(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    assert machine.sum(STORE) == 2 * TURNS


@isas
def test_code_that_the_host_writes_runs(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.write_code(LOOP, machine.two)
    assert machine.sum() == 2 * TURNS


@isas
def test_when_all_blocks_are_dropped_no_jump_is_known(isa):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    machine.engine.memory.write(LOOP, machine.two)
    machine.engine.cpu.uc.ctl_flush_tb()
    assert machine.sum() == 2 * TURNS


@isas
@pytest.mark.parametrize("whole", [False, True])
def test_code_that_is_mapped_elsewhere_runs(isa, whole):
    machine = Machine(isa)
    assert machine.sum() == TURNS
    frames = machine.space.frames
    frames[LOOP // PAGE] = frames[OTHER // PAGE]
    machine.forget(whole=whole)
    assert machine.sum() == 2 * TURNS


@isas
def test_only_a_page_with_code_makes_it_forget(isa):
    machine = Machine(isa)
    machine.space.map(data := CODE + 5 * PAGE, PAGE, Access.READ | Access.WRITE)
    machine.sum()
    state = machine.engine.counter.state
    machine.engine.spaces.fills(machine.space).keep(data // PAGE, 0, int(Access.READ | Access.WRITE))
    machine.engine.spaces.flush_page(data)
    assert state[Word.INVALIDATED] != jump_cache.FORGOTTEN
    machine.engine.spaces.flush_page(LOOP)
    assert state[Word.INVALIDATED] == jump_cache.FORGOTTEN


@isas
def test_a_register_that_is_written_by_a_public_call_makes_it_forget(isa):
    machine = Machine(isa)
    machine.sum()
    state = machine.engine.counter.state
    assert state[Word.INVALIDATED] != jump_cache.FORGOTTEN
    cpu, register = machine.engine.cpu, machine.isa.unicorn.check_register
    cpu.write_public(register, cpu.read_public(register))
    assert state[Word.INVALIDATED] == jump_cache.FORGOTTEN


@pytest.mark.parametrize(("isa", "flags"), [("x86_64", "rax"), ("i386", "eax")])
def test_the_table_holds_for_one_set_of_flags(isa, flags):
    machine = Machine(isa)
    engine, state = machine.engine, machine.engine.counter.state
    # push flags    popf    jmp BACK
    engine.write_code(STORE, bytes.fromhex("509de9") + (BACK - STORE - 7).to_bytes(4, "little", signed=True))
    for value in (2, 2 | AC, 2):
        engine.write_register(ISAS[isa].registers.sp, CODE + PAGE // 2)
        engine.write_register(machine.registers[1], TURNS)
        engine.write_register(flags, value)
        engine.pc = STORE
        engine.run()
        assert state[Word.JUMPS_KEY] & AC == value & AC


@isas
def test_dropped_blocks_are_counted(isa):
    machine = Machine(isa)
    machine.sum()
    count = ctypes.c_uint64.from_address(machine.engine.counter.state[Word.INVALIDATIONS])
    before = count.value
    machine.engine.write_code(LOOP, machine.two)
    assert count.value == before + 1


@isas
def test_without_the_count_qemu_is_asked(isa, monkeypatch):
    monkeypatch.setattr(jump_cache, "invalidations", lambda _cpu: None)
    machine = Machine(isa)
    assert (machine.sum(), machine.sum(STORE)) == (TURNS, 2 * TURNS)
    assert machine.engine.counter.state[Word.JUMPS] == 0


@isas
def test_where_other_instructions_return_the_count_it_is_not_found(isa, monkeypatch):
    cpu = Cpu(ISAS[isa])
    assert jump_cache.invalidations(cpu) is not None
    other = cpu.function("helper_lookup_tb_ptr")
    monkeypatch.setattr(cpu, "function", lambda _name: other)
    assert jump_cache.invalidations(cpu) is None
