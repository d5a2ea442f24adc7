"""AArch64: the upper byte of the address of a program's data is ignored (arch/arm64/mm/proc.S, TBI0)."""

import pytest

from emu.assembly.keystone_engine import available
from emu.engine import native_callbacks
from tests.emu.guest.linux.small_program import ANONYMOUS, FIXED, PAGE, PRIVATE, READ, WRITE, Writer, run_code

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")

DATA, CODE = 0x70_0000, 0x72_0000
TAGGED = 0x05 << 56 | DATA
ENGINES = sorted({native_callbacks.available(), False})


def start():
    writer = Writer("aarch64")
    writer.call("mmap", DATA, PAGE, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0)
    return writer


def load(writer, address, value):
    writer.set("x9", address)
    writer.add("ldr w0, [x9]")
    writer.expect(value)


@pytest.mark.parametrize("accelerated", ENGINES)
def test_loads_stores_and_jumps_ignore_the_tag(accelerated, tmp_path):
    writer = start()
    writer.store(TAGGED, b"\7\0\0\0")
    for tag in (0x00, 0x05, 0x80, 0xFF):
        load(writer, tag << 56 | DATA, 7)
    writer.call("mmap", CODE, PAGE, READ | WRITE | 4, PRIVATE | ANONYMOUS | FIXED, -1, 0)
    writer.store(CODE, writer.returning(9))
    writer.run(0x7F << 56 | CODE)
    writer.expect(9)
    guest, faults = run_code("aarch64", writer.code(), tmp_path, accelerated=accelerated)
    assert (guest.exit_status, faults.noted) == (0, [])


def test_a_child_writes_a_copy_by_a_tagged_address(tmp_path):
    writer = start()
    writer.store(TAGGED, b"\7\0\0\0")

    def child():
        writer.store(TAGGED, b"\x08\0\0\0")
        load(writer, DATA, 8)
        load(writer, TAGGED, 8)

    writer.in_child(child)
    load(writer, TAGGED, 7)
    guest, faults = run_code("aarch64", writer.code(), tmp_path)
    assert (guest.exit_status, faults.noted) == (0, [])


@pytest.mark.parametrize("accelerated", ENGINES)
def test_what_loses_its_rights_loses_them_for_all_tags(accelerated, tmp_path):
    writer = start()
    writer.store(TAGGED, b"\7\0\0\0")
    writer.call("mprotect", DATA, PAGE, READ)
    writer.store(TAGGED + 0x123, b"\7\0\0\0")
    _, faults = run_code("aarch64", writer.code(), tmp_path, accelerated=accelerated)
    assert [one[:3] for one in faults.noted] == [(11, 2, DATA + 0x123)]


def test_a_system_call_refuses_a_tagged_address(tmp_path):
    writer = start()
    writer.call("write", 1, TAGGED, 1)
    writer.expect(-14)
    guest, _ = run_code("aarch64", writer.code(), tmp_path)
    assert guest.exit_status == 0
