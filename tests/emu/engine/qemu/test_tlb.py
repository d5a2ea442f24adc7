"""The TLB of an address space that the host keeps: filled by machine code, and never staler than Unicorn's own."""

from typing import NamedTuple

import pytest

from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.errors import PageFaultError
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.qemu.tlb import FILLS
from emu.engine.state import Word
from emu.isa import ISAS

CODE, DATA = 0x10000, 0x40_0000
RWX = Access.READ | Access.WRITE | Access.EXECUTE
engines = pytest.mark.parametrize(
    "accelerated",
    [
        pytest.param(
            True, marks=pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
        ),
        False,
    ],
    ids=["native", "python"],
)
isas = pytest.mark.parametrize("isa", ISAS)


class Instructions(NamedTuple):
    address: str
    """The register with the address."""
    value: str
    """The register that is loaded and stored."""
    load: str
    store: str


FORMS = {
    "x86_64": Instructions("rdi", "rsi", "488b37", "488937"),
    "i386": Instructions("edi", "esi", "8b37", "8937"),
    "aarch64": Instructions("x0", "x1", "010040f9", "010000f9"),
    "riscv64": Instructions("a0", "a1", "83350500", "2330b500"),
}


class Pages:
    """An address space that counts how often it is asked."""

    def __init__(self, frames):
        self.frames = frames
        self.asked = 0

    @property
    def readable(self):
        return {page: frame for page, (frame, _) in self.frames.items()}

    writable = readable

    def look_up(self, address, access):
        self.asked += 1
        frame, granted = self.frames.get(address // PAGE, (0, Access(0)))
        return (frame + address % PAGE, granted) if access in granted else None

    def reach(self, address, access):
        frame = self.frames.get(address // PAGE)
        return None if frame is None else frame[0] + address % PAGE

    def runs(self):
        return ()


class Machine:
    """Loads and stores, one at a time."""

    def __init__(self, isa, accelerated, pages=8):
        self.form = FORMS[isa]
        frames = {CODE // PAGE: (PAGE, RWX), CODE // PAGE + 1: (2 * PAGE, RWX)}
        frames |= {DATA // PAGE + n: ((3 + n) * PAGE, Access.READ | Access.WRITE) for n in range(pages)}
        self.space = Pages(frames)
        self.engine = Engine(ISAS[isa], (8 + pages) * PAGE, pages=self.space, accelerated=accelerated)
        wait = ISAS[isa].traps.wait
        self.engine.memory.write(CODE + 64, bytes.fromhex(self.form.load) + wait)
        self.engine.memory.write(CODE + 128, bytes.fromhex(self.form.store) + wait)
        for n in range(pages):
            self.poke(3 + n, n + 1)

    def poke(self, frame, value):
        self.engine.memory.ram[frame * PAGE : frame * PAGE + 8] = value.to_bytes(8, "little")

    def load(self, address):
        self.engine.write_register(self.form.address, address)
        self.engine.pc = CODE + 64
        assert self.engine.run()
        return self.engine.read_register(self.form.value)

    def store(self, address, value):
        self.engine.write_register(self.form.address, address)
        self.engine.write_register(self.form.value, value)
        self.engine.pc = CODE + 128
        assert self.engine.run()


@isas
@engines
def test_a_page_that_moves_is_read_where_it_is_now(isa, accelerated):
    machine = Machine(isa, accelerated)
    assert machine.load(DATA) == 1
    machine.space.frames[DATA // PAGE] = (4 * PAGE, Access.READ)
    machine.engine.spaces.flush_page(DATA)
    assert machine.load(DATA) == 2


@isas
@engines
def test_a_page_that_goes_is_a_fault(isa, accelerated):
    machine = Machine(isa, accelerated)
    assert machine.load(DATA + PAGE) == 2
    del machine.space.frames[DATA // PAGE + 1]
    machine.engine.spaces.flush_page(DATA + PAGE)
    with pytest.raises(PageFaultError, match="no read"):
        machine.load(DATA + PAGE)


@isas
@engines
def test_a_page_known_for_reading_is_asked_about_for_writing(isa, accelerated):
    machine = Machine(isa, accelerated)
    machine.space.frames[DATA // PAGE] = (3 * PAGE, Access.READ)
    assert machine.load(DATA) == 1
    with pytest.raises(PageFaultError, match="no write"):
        machine.store(DATA, 7)
    machine.space.frames[DATA // PAGE] = (3 * PAGE, Access.READ | Access.WRITE)
    machine.store(DATA, 7)
    assert machine.load(DATA) == 7


@isas
@engines
def test_two_spaces_have_pages_of_their_own_at_one_address(isa, accelerated):
    machine = Machine(isa, accelerated)
    first = machine.space
    second = Pages(first.frames | {DATA // PAGE: (5 * PAGE, Access.READ)})
    for _ in range(3):
        machine.engine.spaces.use(first)
        assert machine.load(DATA) == 1
        machine.engine.spaces.use(second)
        assert machine.load(DATA) == 3


@isas
@engines
def test_pages_that_share_an_entry_of_the_table_are_distinguished(isa, accelerated):
    machine = Machine(isa, accelerated)
    far = DATA + FILLS * PAGE
    machine.space.frames[far // PAGE] = (6 * PAGE, Access.READ)
    for _ in range(3):
        assert machine.load(DATA) == 1
        assert machine.load(far) == 4


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@isas
def test_python_is_asked_once_for_each_page(isa):
    pages = 2000
    machine = Machine(isa, accelerated=True, pages=pages)
    for _ in range(3):
        for n in range(0, pages, 7):
            assert machine.load(DATA + n * PAGE) == n + 1
    assert machine.space.asked <= pages // 7 + 8


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@isas
def test_the_tlb_grows_until_it_holds_what_a_program_reads(isa):
    pages = 1500
    machine = Machine(isa, accelerated=True, pages=pages)
    state = machine.engine.counter.state

    def filled():
        # The TLB is emptied after 512 fills, after 1,024 more, and so on.
        return state[Word.FILLED] + state[Word.FILLED_MAX] - 512

    def walk():
        before = filled()
        for n in range(pages):
            assert machine.load(DATA + n * PAGE) == n + 1
        return filled() - before

    first, *_, last = (walk() for _ in range(8))
    assert first >= pages
    assert last < pages // 20


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@isas
def test_python_is_not_asked_again_when_a_space_comes_back(isa):
    machine = Machine(isa, accelerated=True)
    first = machine.space
    second = Pages(dict(first.frames))
    for space in (first, second):
        machine.engine.spaces.use(space)
        assert machine.load(DATA) == 1
    asked = first.asked, second.asked
    for space in (first, second) * 3:
        machine.engine.spaces.use(space)
        assert machine.load(DATA) == 1
    assert (first.asked, second.asked) == asked


@isas
@engines
def test_a_page_that_moves_in_a_space_that_does_not_run_is_read_where_it_is_now(isa, accelerated):
    machine = Machine(isa, accelerated)
    first = machine.space
    second = Pages(dict(first.frames))
    assert machine.load(DATA) == 1
    machine.engine.spaces.use(second)
    assert machine.load(DATA) == 1
    first.frames[DATA // PAGE] = (4 * PAGE, Access.READ)
    machine.engine.spaces.fills(first).forget_page(DATA)
    assert machine.load(DATA) == 1
    machine.engine.spaces.use(first)
    assert machine.load(DATA) == 2


@isas
@engines
@pytest.mark.parametrize("many", [False, True], ids=["few pages", "many pages"])
@pytest.mark.parametrize("runs", [False, True], ids=["elsewhere", "on the CPU"])
def test_a_page_that_is_copied_on_write_is_asked_about_in_both_spaces(isa, accelerated, many, runs):
    machine = Machine(isa, accelerated)
    parent = machine.space
    machine.store(DATA, 9)
    child = Pages({page: (frame, granted & ~Access.WRITE) for page, (frame, granted) in parent.frames.items()})
    if not runs:
        machine.engine.spaces.use(Pages({}))
    parent.frames[DATA // PAGE] = (3 * PAGE, Access.READ)
    fills = machine.engine.spaces.fills(parent)
    pages = range(DATA // PAGE, DATA // PAGE + (1 << 13 if many else 1))
    fills.forbid_writing(pages)
    fills.copy_to(machine.engine.spaces.fills(child), pages)
    for space in (parent, child):
        machine.engine.spaces.use(space)
        assert machine.load(DATA) == 9
        with pytest.raises(PageFaultError, match="no write"):
            machine.store(DATA, 7)
    child.frames[DATA // PAGE] = (4 * PAGE, Access.READ | Access.WRITE)
    machine.engine.spaces.fills(child).forget_page(DATA)
    machine.store(DATA, 7)
    assert machine.load(DATA) == 7
    machine.engine.spaces.use(parent)
    assert machine.load(DATA) == 9
