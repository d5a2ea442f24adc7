"""Shortened calls of the hook of served breakpoints: the same runs as without them."""

import ctypes

import pytest

from benchmarks.code import ENTRY
from emu.displaced.cpu_core import CpuCore
from emu.displaced.plans import Set
from emu.engine import native_callbacks
from emu.engine.engine import Engine
from emu.engine.hits.hit_steps import Run
from emu.engine.hits.tracepoint_blocks import EVERY
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE, PageMap
from emu.engine.qemu import inlined_count
from emu.engine.qemu.code_hooks import NOWHERE
from emu.engine.qemu.inline_caches import SITE_SIZE, ServedSite
from emu.engine.state import Word
from emu.guest.function import CODE
from emu.isa import ISAS
from tests.emu.test_native_firing import Traced
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

pytestmark = pytest.mark.skipif(
    not (native_callbacks.available() and inlined_count.POSSIBLE),
    reason="calls are shortened by machine code, on Linux and x86-64",
)
isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
# An instruction of the function after its probe, and one of the same size that does nothing.
BODY = {
    "x86_64": (ENTRY["x86_64"] + 4, "90909090"),
    "i386": (ENTRY["i386"] + 3, "909090"),
    "aarch64": (ENTRY["aarch64"] + 8, "1f2003d5"),
    "riscv64": (ENTRY["riscv64"] + 4, "0100"),
}
# A breakpoint, and a loop behind it that counts the register down.
LOOP = {
    "x86_64": ("cc", "rcx", "48ffc975fa"),
    "i386": ("cc", "ecx", "4975fc"),
    "aarch64": ("a08120d4", "x1", "210400d1c1ffffb5"),
    "riscv64": ("0290", "a1", "fd15f5fd"),
}


def sites(engine):
    """Return the sites of an engine by the addresses of their breakpoints."""
    places = {place.address: address for address, place in engine._code_hooks._places.blocks.items()}
    first, free = engine.counter._written[0], engine.counter.state[Word.FREE]
    found = {}
    for at in range(first, free, inlined_count.ENTRY_SIZE):
        word = ctypes.c_uint64.from_address(at).value
        if word in places:
            found.setdefault(places[word], []).append(ServedSite.from_address(at))
    return found


@pytest.fixture
def pair(request, monkeypatch):
    """Make the same thing twice: with sites, and where there is no memory for them."""

    def make(factory):
        with_sites = factory()
        with monkeypatch.context() as patch:
            patch.setattr("emu.engine.time.counter.low_memory", lambda _size: None)
            return with_sites, factory()

    return make


def same(first, second):
    assert first.fired() == second.fired()
    assert first.registers() == second.registers()
    assert first.guest.engine.instructions == second.guest.engine.instructions


@isas
def test_a_site_is_made_at_the_first_hit_that_is_served_and_nothing_else_differs(isa, pair):
    traced, plain = pair(lambda: Traced(isa).enable("entry", "return"))
    for one in (traced, plain):
        one.guest.call(30)
    same(traced, plain)
    assert traced.entry in sites(traced.guest.engine)
    assert len(sites(traced.guest.engine)) == 2
    assert not plain.guest.engine.counter.state[Word.FREE]


@isas
def test_the_next_block_is_remembered_until_code_is_written(isa, pair):
    traced, plain = pair(lambda: Traced(isa).enable("entry"))
    offset, nothing = BODY[isa.name]
    for one in (traced, plain):
        one.guest.call(10)
    engine = traced.guest.engine
    (site,) = sites(engine)[traced.entry]
    assert traced.entry < site.pc < traced.entry + 8
    invalidations = ctypes.c_uint64.from_address(engine.counter.state[Word.INVALIDATIONS])
    before = site.count
    assert before == invalidations.value
    for one in (traced, plain):
        one.guest.engine.write_code(CODE + offset, bytes.fromhex(nothing))
        one.guest.call(10)
    assert invalidations.value > before
    assert sites(engine)[traced.entry][-1].count == invalidations.value
    same(traced, plain)


@isas
def test_probes_that_come_and_go_are_never_those_of_before(isa, pair):
    traced, plain = pair(lambda: Traced(isa).enable("entry", "return"))
    for one in (traced, plain):
        one.guest.call(6)
        one.disable("entry")
        one.guest.call(6)
        one.enable("entry")
        one.disable("return")
        one.guest.call(6)
        one.guest.traps.add(lambda *_: 0)
        one.guest.call(6)
    same(traced, plain)


@isas
def test_with_all_entries_used_calls_stay_until_blocks_are_translated_anew(isa, pair, monkeypatch):
    monkeypatch.setattr("emu.engine.time.counter.ENTRIES", 5)
    traced, plain = pair(lambda: Traced(isa).enable("entry", "return"))
    for one in (traced, plain):
        for _ in range(5):
            one.guest.call(6)
    same(traced, plain)


class Loop:
    """A loop that begins with a served breakpoint, some bytes before the end of a page."""

    def __init__(self, isa, before_end):
        trap, self.register, loop = LOOP[isa.name]
        space = PageMap()
        space.map(CODE, 4 * PAGE, Access.READ | Access.WRITE | Access.EXECUTE)
        self.engine = Engine(isa, 8 * PAGE, pages=space)
        self.start = CODE + PAGE - before_end
        code = bytes.fromhex(trap)
        self.engine.write_code(self.start, code + bytes.fromhex(loop) + isa.traps.wait)
        pc = isa.registers.pc
        steps = (Run((Set(pc, pc, len(code)),)),)
        self.core = CpuCore()
        self.engine.tracepoints.set((self.start, EVERY, EVERY), self.core, None, steps)

    def run(self, turns):
        """Return where the run ends, and after how many instructions."""
        self.engine.write_register(self.register, turns)
        self.engine.pc = self.start
        assert self.engine.run()
        return self.engine.pc, self.engine.instructions


@isas
@pytest.mark.parametrize("where", ["inside", "at the end", "across"])
def test_only_a_next_block_in_the_page_is_remembered(isa, where, pair):
    size = len(bytes.fromhex(LOOP[isa.name][0]))
    before_end = {"inside": 256, "at the end": size, "across": size + isa.instruction_alignment}[where]
    loop, plain = pair(lambda: Loop(isa, before_end))
    for turns in (20, 30):
        assert loop.run(turns) == plain.run(turns)
    ((site, *_),) = sites(loop.engine).values()
    if where == "inside":
        assert site.pc == loop.start + size
    elif where == "at the end" or isa.instruction_alignment == 1:  # elsewhere a block ends with its page
        assert site.pc == NOWHERE


@isas
def test_runs_stop_where_they_do_without(isa, pair):
    stops = []
    for loop in pair(lambda: Loop(isa, 256)):
        engine = loop.engine
        engine.write_register(loop.register, 200)
        engine.pc = loop.start
        seen = []
        while not engine.run(hard=engine.instructions + 7):
            seen.append((engine.pc, engine.instructions, engine.read_register(loop.register)))
        stops.append(seen)
    assert len(stops[0]) > 50
    assert stops[0] == stops[1]


@isas
def test_single_steps_after_a_site_was_made(isa, pair):
    loops = pair(lambda: Loop(isa, 256))
    seen = []
    for loop in loops:
        loop.run(10)
        loop.engine.write_register(loop.register, 10)
        loop.engine.pc = loop.start
        steps = []
        for _ in range(12):
            loop.engine.step()
            steps.append((loop.engine.pc, loop.engine.instructions))
        seen.append((steps, loop.run(10)))
    assert seen[0] == seen[1]


@isas
def test_sites_of_a_kernel_remember_their_next_blocks(isa, monkeypatch):
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    machine = boot(kernel_guest(KernelOptions(isa=isa, command="getpid 100000")))
    guest = machine.guest
    with Tracer(guest, machine.dtrace, {"aggrate": "1us"}, provide=machine.probes.provide) as tracer:
        tracer.enable("fbt::sys_getpid:entry, fbt::sys_getpid:return { @ = count(); }")
        tracer.session.go()
        guest.run(guest.now() + 50_000_000)
        found = sites(guest.engine)
        tracer.session.work()
        counts = [element.value for element in tracer.aggregations()]
    entry = guest.image.symbol("sys_getpid").value
    (site, *_) = next(found[at] for at in sorted(found) if at >= entry)
    assert entry < site.pc < entry + 16
    assert sum(counts) > 1000


def test_a_site_takes_whole_entries():
    assert SITE_SIZE % inlined_count.ENTRY_SIZE == 0
    assert ctypes.sizeof(ServedSite) <= SITE_SIZE
