"""Counts written into translated blocks: the same runs, to the instruction, as with the hook and its table."""

import gc
import mmap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.qemu import inlined_count
from emu.engine.state import Word
from emu.isa import ISAS
from emu.native.libc import libc

pytestmark = pytest.mark.skipif(
    not (native_callbacks.available() and inlined_count.POSSIBLE),
    reason="counts are written by machine code, on Linux and x86-64",
)

isas = pytest.mark.parametrize("isa", ISAS)
CODE = 0x10000
# Counts the register down to 0 in blocks of two or more instructions, then waits.
COUNT_DOWN = {
    "x86_64": ("rcx", "48ffc975fb"),
    "i386": ("ecx", "499075fc"),
    "aarch64": ("x1", "210400d1e1ffffb5"),
    "riscv64": ("a1", "fd15fdfd"),
}


class Machine:
    """Code at `CODE`, in a space of its own."""

    def __init__(self, isa, *, written):
        space = PageMap()
        space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
        self.isa = ISAS[isa]
        self.engine = Engine(self.isa, 8 * PAGE, pages=space, accelerated=True, inlined=written)
        self.register, loop = COUNT_DOWN[isa]
        self.load(bytes.fromhex(loop))

    def load(self, loop):
        self.engine.write_code(CODE, loop + self.isa.traps.wait)

    @property
    def written(self):
        """How many blocks have their counts in them."""
        first = self.engine.counter._written[0]
        return (self.engine.counter.state[Word.FREE] - first) // inlined_count.ENTRY_SIZE

    def start(self, turns):
        self.engine.write_register(self.register, turns)
        self.engine.pc = CODE


@isas
def test_a_block_calls_the_hook_once(isa):
    machine = Machine(isa, written=True)
    machine.start(1000)
    assert machine.engine.run()
    assert 1 <= machine.written <= 3
    assert machine.engine.counter.state[Word.OVERDUE]
    blocks = machine.written
    before = machine.engine.instructions
    machine.start(1000)
    assert machine.engine.run()
    assert machine.written == blocks
    assert 2000 <= machine.engine.instructions - before <= 3001


@isas
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_runs_stop_where_they_do_without(isa, data):
    """Deadlines at random counts: the same places, counts and registers."""
    deadlines = data.draw(st.lists(st.integers(1, 400), min_size=1, max_size=6))
    stops = []
    for written in (True, False):
        machine = Machine(isa, written=written)
        machine.start(100)
        seen = []
        for deadline in deadlines:
            waits = machine.engine.run(hard=machine.engine.instructions + deadline)
            engine = machine.engine
            seen.append((waits, engine.pc, engine.instructions, engine.read_register(machine.register)))
            if waits:
                break
        stops.append(seen)
    assert stops[0] == stops[1]


@isas
def test_code_that_is_written_has_new_counts(isa):
    counts = []
    for written in (True, False):
        machine = Machine(isa, written=written)
        machine.start(50)
        machine.engine.run()
        nops = bytes.fromhex({"x86_64": "9090", "i386": "9090", "aarch64": "1f2003d5", "riscv64": "0100"}[isa])
        machine.load(nops + bytes.fromhex(COUNT_DOWN[isa][1]))
        machine.start(50)
        machine.engine.run()
        counts.append(machine.engine.instructions)
    assert counts[0] == counts[1]


@isas
@pytest.mark.parametrize("nops", [120, 125, 126, 127, 130, 300])
def test_long_blocks_are_counted(isa, nops):
    counts = []
    for written in (True, False):
        machine = Machine(isa, written=written)
        nop = bytes.fromhex({"x86_64": "90", "i386": "90", "aarch64": "1f2003d5", "riscv64": "0100"}[isa])
        machine.load(nops * nop + bytes.fromhex(COUNT_DOWN[isa][1]))
        machine.start(5)
        machine.engine.run()
        counts.append(machine.engine.instructions)
    assert counts[0] == counts[1] > nops


@isas
def test_with_all_entries_used_blocks_are_translated_anew(isa, monkeypatch):
    monkeypatch.setattr("emu.engine.time.counter.ENTRIES", 2)
    machine, plain = Machine(isa, written=True), Machine(isa, written=False)
    for turns in (30, 20, 10):
        for one in (machine, plain):
            one.start(turns)
            one.engine.run()
        assert machine.engine.instructions == plain.engine.instructions


@isas
def test_a_run_that_is_left_from_a_callback_ends(isa):
    machine = Machine(isa, written=True)
    machine.start(1 << 30)
    machine.engine.run(hard=5000)
    turns = machine.engine.read_register(machine.register)
    machine.engine.stop()  # between two runs this does nothing
    machine.engine.run(hard=machine.engine.instructions + 5000)
    assert machine.engine.read_register(machine.register) < turns


@isas
def test_where_there_is_not_a_low_memory_the_table_counts(isa, monkeypatch):
    monkeypatch.setattr("emu.engine.time.counter.low_memory", lambda _size: None)
    machine, plain = Machine(isa, written=True), Machine(isa, written=False)
    for one in (machine, plain):
        one.start(100)
        one.engine.run()
    assert machine.engine.counter.state[Word.OVERDUE] == 0
    assert machine.engine.instructions == plain.engine.instructions


@isas
def test_counts_are_written_where_every_place_around_the_code_is_taken(isa, request):
    """A process that made hundreds of engines has holes of one size, and the next buffer of code fills one."""
    first = Machine(isa, written=True)
    first.start(1000)
    first.engine.run()
    step = 64 << 20
    middle = first.engine.counter.state[Word.LOWEST] & -step
    for place in range(middle - 64 * step, middle + 64 * step, step):
        fill(place, request)
    del first
    gc.collect()
    second = Machine(isa, written=True)
    second.start(1000)
    assert second.engine.run()
    assert second.written


@isas
def test_where_the_host_keeps_the_page_behind_the_code_protected_the_table_counts(isa, monkeypatch):
    monkeypatch.setattr(inlined_count, "_protect", lambda _address, _access: False)
    machine, plain = Machine(isa, written=True), Machine(isa, written=False)
    for each in (machine, plain):
        each.start(1000)
        assert each.engine.run()
    assert machine.engine.counter.state[Word.OVERDUE] == machine.engine.counter.state[Word.FREE] == 0
    assert machine.engine.instructions == plain.engine.instructions


def fill(place, request):
    """Map a page at an address if it is free, until the test ends."""
    fixed = 0x10_0000  # MAP_FIXED_NOREPLACE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed
    found = libc().mmap(place, mmap.PAGESIZE, 0, flags, -1, 0)
    if found == place:
        request.addfinalizer(lambda: libc().munmap(place, mmap.PAGESIZE))


def test_memory_of_engines_that_only_refer_to_themselves_is_used_again(request):
    size = 16 << 20
    gc.disable()
    request.addfinalizer(gc.enable)
    while (memory := inlined_count._low(size)) is not None:
        cycle = [memory]
        cycle.append(cycle)
        del memory, cycle  # the loop's next one would free it, but for the cycle
    assert inlined_count.low_memory(size) is not None
