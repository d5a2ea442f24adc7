"""The signal, its code, its address and the pc of a program's fault, as natively and under qemu-user."""

import struct

import pytest

from emu.assembly.keystone_engine import available
from emu.engine import native_callbacks
from emu.isa import ISAS
from tests.emu.guest.linux.small_program import (
    ANONYMOUS,
    EXECUTE,
    FIXED,
    PAGE,
    PRIVATE,
    READ,
    WRITE,
    Writer,
    run_code,
)

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")

CODE = 0x70_0000
SEGV, TRAP, BUS = 11, 5, 7
MAPERR, ACCERR, BRKPT, KERNEL, ADRALN = 1, 2, 1, 128, 1
ENGINES = sorted({native_callbacks.available(), False})
# What is behind the page: rights, or None if nothing is mapped; the code of the signal.
BEHIND = {"nothing": (None, MAPERR), "no rights": (0, ACCERR), "data": (READ | WRITE, ACCERR)}
# Three instructions that add one to the result, then one of which some bytes are in the page behind, and those.
CROSSING = {
    "x86_64": (bytes.fromhex("ffc0ffc0ffc0") + bytes.fromhex("bb01020304"), 3),
    "i386": (bytes.fromhex("ffc0ffc0ffc0") + bytes.fromhex("bb01020304"), 1),
    "aarch64": (struct.pack("<3I", *3 * (0x91000400,)), 0),
    "riscv64": (struct.pack("<5H", 0x0505, 0x0505, 0x0505, 0x0513, 0x0015), 2),
}
# Stores the result at the address in it.
STORE = {
    "x86_64": bytes.fromhex("8900 9090"),
    "i386": bytes.fromhex("8900 9090"),
    "aarch64": struct.pack("<I", 0xB9000000),
    "riscv64": struct.pack("<I", 0x00A52023),
}
BREAKPOINTS = {
    "x86_64": (b"\xcc", KERNEL, 0, 1),
    "i386": (b"\xcd\x03", KERNEL, 0, 2),
    "aarch64": (struct.pack("<I", 0xD4200020), BRKPT, CODE, 0),
    "riscv64": (struct.pack("<H", 0x9002), BRKPT, CODE, 0),
}


def prepared(isa):
    """Return a program with a page for code, and a page behind it."""
    writer = Writer(isa)
    writer.call("mmap", CODE, 2 * PAGE, READ | WRITE | EXECUTE, PRIVATE | ANONYMOUS | FIXED, -1, 0)
    return writer


def change(writer, behind):
    if behind is None:
        writer.call("munmap", CODE + PAGE, PAGE)
    else:
        writer.call("mprotect", CODE + PAGE, PAGE, behind)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("run_before", [False, True], ids=["new", "run before"])
@pytest.mark.parametrize("accelerated", ENGINES)
def test_an_instruction_ends_in_a_page_that_cannot_be_executed(isa, behind, run_before, accelerated, tmp_path):
    rights, code = BEHIND[behind]
    instructions, beyond = CROSSING[isa]
    at = CODE + PAGE - len(instructions) + beyond
    writer = prepared(isa)
    writer.store(at, instructions + writer.returning(0)[-(4 if isa in {"aarch64", "riscv64"} else 1) :])
    if run_before:
        writer.run(at, 0)
        writer.expect(4 if isa == "riscv64" else 3)
    change(writer, rights)
    writer.run(at, 100)
    _, faults = run_code(isa, writer.code(), tmp_path, accelerated=accelerated)
    length = {"x86_64": 5, "i386": 5, "aarch64": 0, "riscv64": 4}[isa]
    assert faults.noted == [(SEGV, code, CODE + PAGE, at + len(instructions) - length)]
    assert faults.results == [103], "the instructions before it are executed"


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("distance", [4, 8, 64])
def test_the_address_of_a_store_at_the_end_of_a_page_of_code(isa, behind, distance, tmp_path):
    rights, code = BEHIND[behind]
    writer = prepared(isa)
    writer.store(CODE + PAGE - distance, STORE[isa])
    if behind == "data":
        rights = READ | EXECUTE
    change(writer, rights)
    writer.run(CODE + PAGE - distance, CODE + PAGE + 0x14)
    _, faults = run_code(isa, writer.code(), tmp_path)
    assert faults.noted == [(SEGV, code, CODE + PAGE + 0x14, CODE + PAGE - distance)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("accelerated", ENGINES)
def test_a_breakpoint_of_the_programs_own(isa, accelerated, tmp_path):
    instruction, code, address, behind = BREAKPOINTS[isa]
    writer = prepared(isa)
    writer.store(CODE, instruction)
    writer.run(CODE)
    _, faults = run_code(isa, writer.code(), tmp_path, accelerated=accelerated)
    assert faults.noted == [(TRAP, code, address, CODE + behind)]


# The address is in the result's register; whether an odd one is a fault (BUS_ADRALN), or works.
ALIGNED = {
    "aarch64": {
        "ldar w1, [x0]": (0x88DFFC01, True),
        "ldar x1, [x0]": (0xC8DFFC01, True),
        "ldarh w1, [x0]": (0x48DFFC01, True),
        "ldarb w1, [x0]": (0x08DFFC01, False),
        "stlr w1, [x0]": (0x889FFC01, True),
        "stlrh w1, [x0]": (0x489FFC01, True),
        "stlrb w1, [x0]": (0x089FFC01, False),
        "ldxr w1, [x0]": (0x885F7C01, True),
        "ldaxr x1, [x0]": (0xC85FFC01, True),
        "ldr x1, [x0]": (0xF9400001, False),
        "str w1, [x0]": (0xB9000001, False),
    },
    "riscv64": {
        "lr.w a1, (a0)": (0x100525AF, True),
        "amoadd.d a1, a1, (a0)": (0x00B535AF, True),
        "lw a1, 0(a0)": (0x00052583, False),
        "sd a1, 0(a0)": (0x00B53023, False),
    },
}


@pytest.mark.parametrize("accelerated", ENGINES)
@pytest.mark.parametrize(("isa", "name"), [(isa, name) for isa, rows in ALIGNED.items() for name in rows])
def test_what_has_to_be_aligned_is_a_bus_error_at_the_address(isa, name, accelerated, tmp_path):
    word, fails = ALIGNED[isa][name]
    writer = prepared(isa)
    back = writer.returning(0)[-4:]
    writer.store(CODE, struct.pack("<I", word) + back)
    writer.run(CODE, CODE + 0x100)
    writer.run(CODE, CODE + 0x101)
    guest, faults = run_code(isa, writer.code(), tmp_path, accelerated=accelerated)
    assert faults.noted == ([(BUS, ADRALN, CODE + 0x101, CODE)] if fails else [])
    assert guest.exit_status == (128 + BUS if fails else 0)
