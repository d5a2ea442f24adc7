"""A mapping with MAP_GROWSDOWN grows at an access below it, but not up to another mapping."""

import pytest

from emu.assembly.keystone_engine import available
from tests.emu.guest.linux.small_program import ANONYMOUS, FIXED, PAGE, PRIVATE, READ, SHARED, WRITE, Writer, run_code

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")

ISAS = ("x86_64", "i386", "aarch64", "riscv64")
GROWS = 0x100
STACK, GAP = 0x200_0000, 256 * PAGE


def start(isa):
    writer = Writer(isa)
    writer.call("mmap", STACK, PAGE, READ | WRITE, PRIVATE | ANONYMOUS | FIXED | GROWS, -1, 0)
    return writer


@pytest.mark.parametrize("isa", ISAS)
def test_a_store_below_it_extends_it(isa, tmp_path):
    writer = start(isa)
    for distance in (8, PAGE, 64 * PAGE):
        writer.store(STACK - distance, b"\1\0\0\0")
    writer.call("munmap", STACK - 64 * PAGE, 65 * PAGE)
    writer.expect(0)
    guest, faults = run_code(isa, writer.code(), tmp_path)
    assert (guest.exit_status, faults.noted) == (0, [])


@pytest.mark.parametrize(("distance", "grows"), [(GAP + PAGE, True), (GAP - PAGE, False)])
def test_a_gap_stays_below_it(distance, grows, tmp_path):
    writer = start("x86_64")
    below = STACK - 2 * PAGE - distance
    writer.call("mmap", below - PAGE, PAGE, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0)
    writer.store(STACK - 2 * PAGE, b"\1\0\0\0")
    _, faults = run_code("x86_64", writer.code(), tmp_path)
    assert [one[:3] for one in faults.noted] == ([] if grows else [(11, 1, STACK - 2 * PAGE)])


def test_shared_memory_does_not_grow(tmp_path):
    writer = Writer("x86_64")
    writer.call("mmap", STACK, PAGE, READ | WRITE, SHARED | ANONYMOUS | FIXED | GROWS, -1, 0)
    writer.expect(-22)
    guest, _ = run_code("x86_64", writer.code(), tmp_path)
    assert guest.exit_status == 0
