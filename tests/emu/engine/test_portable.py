"""Portable mode: the same runs and traces by Unicorn's public calls alone."""

from pathlib import Path

import pytest

from emu.engine.portable import PortableCpu
from emu.guest.function import CODE, FunctionGuest
from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from emu.unicorn_layout import find, layout
from emu.unicorn_layout.library import Library
from emu.unicorn_layout.modes import Mode
from tests.emu.guest.linux.support import start
from trapline.consumer.tracer import Tracer

PORTABLE = layout.WheelLayout(Mode.PORTABLE, "a test")
MILLISECOND = 10**6
RAM = 8 << 20
# The bit of a page table's entry that says that it was used: the CPU's own accesses at an exception set it.
ACCESSED = 0x20


@pytest.fixture
def modes(monkeypatch):
    """Call a function in the mode of this host, and in portable mode; return both results."""

    def both(function, other=PORTABLE):
        results = []
        for chosen in (layout.current(), other):
            monkeypatch.setattr(layout._Current, "layout", chosen)
            results.append(function())
        return results

    return both


def differing(one, other):
    """Return the words that differ by more than the mark of a page that was used."""
    pages = [page for page in range(0, len(one), 4096) if one[page : page + 4096] != other[page : page + 4096]]
    words = [
        (at, *(int.from_bytes(ram[at : at + 8], "little") for ram in (one, other)))
        for page in pages
        for at in range(page, page + 4096, 8)
    ]
    return [(hex(at), hex(a), hex(b)) for at, a, b in words if a ^ b not in {0, ACCESSED}]


@pytest.mark.parametrize("isa", ISAS)
def test_a_kernel_boots_and_its_first_program_runs_the_same(modes, isa):
    def run():
        guest = KernelGuest(ISAS[isa], trap_path=TrapPath.GUEST, ram=RAM)
        fired = []
        probed = guest.image.symbol("vm_fault").value
        guest.engine.on_code(probed, lambda: fired.append(guest.engine.instructions))
        guest.boot()
        guest.start_clock(MILLISECOND // 2)
        guest.run(guest.now() + MILLISECOND)
        cpu = guest.engine.cpu
        assert isinstance(cpu, PortableCpu) is (layout.current() is PORTABLE)
        names = set(ISAS[isa].registers.slots) - {"hflags", "ss_limit_and_flags"}
        return fired, {name: cpu.read_register(name) for name in names}, guest.engine.memory.ram.tobytes()

    native, portable = modes(run)
    assert len(native[0]) > 3
    assert portable[:2] == native[:2]
    assert differing(portable[2], native[2]) == []


def traced(isa, case="divide"):  # it raises exceptions that the host must make QEMU forget
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), case])
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable("pid$target:a.out:main:, syscall:::entry { @[probefunc, timestamp] = count(); }")
        tracer.run()
        counts = {element.keys: element.value for element in tracer.aggregations()}
    return bytes(output), counts, machine.guest.engine.instructions


# add 1 to the result, and jump to the next instruction; return.
BLOCKS = {
    "x86_64": ("ffc0eb00", "c3"),
    "i386": ("40eb00", "c3"),
    "aarch64": ("0004009101000014", "c0035fd6"),
    "riscv64": ("130515006f004000", "67800000"),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("writes", [False, True])
def test_code_is_forgotten_while_it_runs(modes, isa, writes):
    block, end = map(bytes.fromhex, BLOCKS[isa])

    def run():
        guest = FunctionGuest(ISAS[isa], 5 * block + end)
        engine, seen = guest.engine, []

        def forget():
            seen.append(engine.instructions)
            if writes:
                engine.write_code(CODE + 3 * len(block), end)
            else:
                engine.forget_code(guest.physical(CODE), 1)

        engine.on_code(CODE, forget)
        engine.write_register(ISAS[isa].calling.results[0], 0)
        engine.forget_code(guest.physical(CODE), 1)  # the first block begins where the next would be
        return guest.call(limit=100), seen, engine.instructions

    native, portable = modes(run)
    assert native == portable
    assert native[1:] == ([0], (8 if writes else 12))


@pytest.mark.parametrize("isa", ISAS)
def test_a_linux_program_has_the_same_trace(modes, isa):
    native, portable = modes(lambda: traced(isa))
    assert native == portable
    assert len(native[1]) > 5


def test_where_calibration_fails_portable_mode_takes_over_with_the_same_trace(modes, monkeypatch, tmp_path):
    monkeypatch.setenv("TRAPLINE_CACHE", str(tmp_path))
    monkeypatch.delenv("TRAPLINE_ENGINE", raising=False)
    monkeypatch.setattr(find, "_CODE", "import sys; sys.exit('no pipes here')")
    chosen = layout.choose(Library("2.9.9", Path(__file__), "another host"))
    assert (chosen.mode, chosen.reason) == (Mode.PORTABLE, "calibration failed: no pipes here")
    native, portable = modes(lambda: traced("aarch64", "args"), chosen)
    assert native == portable
