"""Exceptions that floating-point operations of x86 accrue, as the host's own CPU has them."""

from __future__ import annotations

import ctypes
import struct

import pytest

from emu.engine import native_callbacks
from emu.guest.function import CODE, FunctionGuest
from emu.isa import ISAS
from tests.support.host_code import execute, native_host

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
modes = pytest.mark.parametrize("isa", ["x86_64", "i386"])

# The code is the same in both modes; a word below the stack pointer, where neither has anything, is scratch.
SCRATCH = "4424f8"


def stored(bits):
    """Code: movl $bits,-8(%rsp)."""
    return f"c7{SCRATCH}{bits.to_bytes(4, 'little').hex()}"


def floats(*numbers):
    """Code that loads xmm0, xmm1 ...: movl, movss."""
    words = [int.from_bytes(struct.pack("<f", number), "little") for number in numbers]
    return "".join(stored(word) + f"f30f10{0x44 | place << 3:02x}24f8" for place, word in enumerate(words))


def pushed(*numbers):
    """Code that pushes numbers on the x87's stack: movl, flds."""
    return "".join(stored(int.from_bytes(struct.pack("<f", number), "little")) + f"d9{SCRATCH}" for number in numbers)


HUGE, TINY, NAN, INFINITE = 3e38, 2e-38, float("nan"), float("inf")
# Code that returns mxcsr, and the x87's status word.
MXCSR, STATUS_WORD = f"0fae5c24f88b{SCRATCH}", "31c0dfe0"
# ldmxcsr, fninit.
CLEAR = f"{stored(0x1F80)}0fae5424f8dbe3"
OPERATIONS = {
    "nothing": "",
    "1 / 3": floats(1, 3) + "f30f5ec1",
    "1 / 0": floats(1, 0) + "f30f5ec1",
    "0 / 0": floats(0, 0) + "f30f5ec1",
    "1 + 1": floats(1, 1) + "f30f58c1",
    "overflow": floats(HUGE, HUGE) + "f30f59c1",
    "underflow": floats(TINY, TINY) + "f30f59c1",
    "root of -1": floats(-1) + "f30f51c0",
    "infinity to an integer": floats(INFINITE) + "f30f2cc0",
    "comiss of a NaN": floats(NAN, 1) + "0f2fc1",
    "ucomiss of a NaN": floats(NAN, 1) + "0f2ec1",
    "1 / 3, then 1 / 0": floats(1, 3) + "f30f5ec1" + floats(1, 0) + "f30f5ec1",
    "1 / 0, then ldmxcsr": floats(1, 0) + "f30f5ec1" + stored(0x1F80) + "0fae5424f8",
    "1 / 0, then ldmxcsr of another": floats(1, 0) + "f30f5ec1" + stored(0x1FA0) + "0fae5424f8",
    "1 / 0, stmxcsr, 1 / 3": floats(1, 0) + "f30f5ec10fae5c24f8" + floats(1, 3) + "f30f5ec1",
}
X87_OPERATIONS = {
    "nothing": "",
    "1 / 3": pushed(1, 3) + "def9",
    "1 / 0": pushed(1, 0) + "def9",
    "1 + 1": pushed(1, 1) + "dec1",
    "root of -1": pushed(-1) + "d9fa",
    "2.5 to an integer": pushed(2.5) + "db5c24f8",
    "infinity to an integer": pushed(INFINITE) + "db5c24f8",
    "1 / 3, then 1 / 0": pushed(1, 3) + "def9" + pushed(1, 0) + "def9",
    "1 / 0, then fnclex": pushed(1, 0) + "def9dbe2",
    "1 / 3, fnstsw, then fnclex": pushed(1, 3) + "def9dfe0dbe2",
    "1 / 0, then fninit": pushed(1, 0) + "def9dbe3",
    "1 / 0, unmasked": stored(0x37B) + "d96c24f8" + pushed(1, 0) + "def9",
}
# The condition codes are not exceptions; TOP is in between.
EXCEPTIONS = 0x80BF


@native_host
@engines
@modes
@pytest.mark.parametrize("case", OPERATIONS)
def test_mxcsr_is_that_of_the_host(isa, case, accelerated):
    code = bytes.fromhex(CLEAR + OPERATIONS[case] + MXCSR + "dbe3c3")
    assert FunctionGuest(ISAS[isa], code, accelerated=accelerated).call() & 0xFFFF_FFFF == execute(code)


@native_host
@engines
@modes
@pytest.mark.parametrize("case", X87_OPERATIONS)
def test_the_status_word_is_that_of_the_host(isa, case, accelerated):
    code = bytes.fromhex(CLEAR + X87_OPERATIONS[case] + STATUS_WORD + "dbe3c3")
    found = FunctionGuest(ISAS[isa], code, accelerated=accelerated).call()
    assert found & EXCEPTIONS == execute(code) & EXCEPTIONS


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@modes
def test_machine_code_finds_what_python_finds(isa):
    engine = FunctionGuest(ISAS[isa], bytes(64), accelerated=True).engine
    # cmpxchg, too, is found by both.
    kinds = [one for one in (ISAS[isa].unicorn.accruing, ISAS[isa].unicorn.corrections) if one is not None]
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    ask = compare(engine.callbacks.emulated[0].value)
    key, hooked = ctypes.c_uint64(CODE), ctypes.c_uint64.from_address(engine._code_hooks.block.range)
    codes = [
        bytes.fromhex(prefixes) + opcode + bytes((modrm, 0x80))
        for prefixes in ("", "66", "48", "642e", "f0", "f3", "4866", "48f0", 14 * "66", 13 * "2e", 14 * "2e")
        for opcode in (*(bytes((one,)) for one in range(256)), *(bytes((0x0F, one)) for one in range(256)))
        for modrm in (*range(0, 0x40, 8), 0x60, 0xC0, 0xC8, 0xE0, 0xE2, 0xE3, 0xE8, 0xF8)
    ]
    found = 0
    for code in codes:
        engine.memory.write(CODE, code.ljust(16, b"\x90"))
        ask(ctypes.byref(key), None, None)
        wanted = any(one.found(lambda at: engine.memory.read(at, 1)[0], CODE) for one in kinds)
        assert (hooked.value == CODE) == wanted, code.hex()
        found += wanted
    assert 0 < found < len(codes) // 10
