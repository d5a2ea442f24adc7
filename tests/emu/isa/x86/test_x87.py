"""The x87's remainders and functions against the host's CPU, and as guests execute them."""

from __future__ import annotations

import ctypes
import random
import struct

import pytest
from unicorn.x86_const import UC_X86_REG_CR0

from emu.engine import native_callbacks
from emu.guest.function import FunctionGuest
from emu.isa import ISAS
from emu.isa.x86.x87 import C2, CONDITIONS, OPERATIONS, Extended, Rounding, result
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
BIAS, ONE, INFINITE = 0x3FFF, 1 << 63, 0x7FFF
CASES = 150
EXCEPTIONS = 0x3F
NAMES = {operation.function.__name__: code for code, operation in OPERATIONS.items()}
REMAINDERS = {"fprem", "fprem1"}


def number(draw):
    """A number of some kind."""
    sign, mantissa = draw.randrange(2), ONE | draw.getrandbits(63)
    kinds = (
        lambda: (0, 0),
        lambda: (INFINITE, ONE),
        lambda: (INFINITE, mantissa),
        lambda: (0, draw.getrandbits(63)),
        lambda: (draw.randrange(INFINITE), mantissa),
        lambda: (BIAS + draw.randrange(-3, 3), ONE),
        lambda: (BIAS + draw.randrange(-70, 70), mantissa),
        lambda: (BIAS + draw.randrange(-70, 70), ONE | draw.getrandbits(5) << 58),
        lambda: (BIAS + draw.randrange(-6, 6), mantissa),
        lambda: (BIAS + draw.randrange(-6, 6), mantissa),
    )
    return Extended(sign, *draw.choice(kinds)())


def packed(value):
    return struct.pack("<QH6x", value.mantissa, value.sign << 15 | value.exponent)


def unpacked(data):
    mantissa, rest = struct.unpack_from("<QH", data)
    return Extended(rest >> 15, rest & 0x7FFF, mantissa)


def code(operation, *, after="dd7f22 db7f30 db7f40"):
    """Code of d9 `operation` for operands at (%rdi): ST(1), ST(0), the control word; there, the results go."""
    return bytes.fromhex(f"dbe3 d96f20 db2f db6f10 d9{operation:02x} {after} dbe3 c3")


def on_the_host(operation, st0, st1, rounding):
    """Return the status word, and the two numbers on top."""
    place = ctypes.create_string_buffer(packed(st1) + packed(st0) + struct.pack("<H", 0x37F | rounding << 10), 96)
    execute(code(operation), ctypes.addressof(place))
    return struct.unpack_from("<H", place, 34)[0], unpacked(place[48:]), unpacked(place[64:])


def apart(one, other):
    """How many numbers lie between two."""
    return abs(sum((one.exponent << 63, one.mantissa)) - sum((other.exponent << 63, other.mantissa)))


def defined(name, st0):
    """Whether the manual defines the result."""
    in_range = st0.exponent < BIAS or st0.is_nan
    return {"f2xm1": in_range, "fyl2xp1": in_range and (not st0.sign or st0.exponent < BIAS - 2)}.get(name, True)


@native_host
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_host(name):
    """Remainders are equal; of the other results the manual allows one unit in the last place."""
    draw, compared = random.Random(name), 0  # noqa: S311
    operation = NAMES[name]
    for _ in range(CASES):
        st0, st1, rounding = number(draw), number(draw), Rounding(draw.choice((0, 0, 0, 1, 2, 3)))
        if not defined(name, st0):
            continue
        compared += 1
        status, top, second = on_the_host(operation, st0, st1, rounding)
        found = result(operation, st0, st1, rounding)
        wrong = [name, st0, st1, rounding, top, found]
        looked_at = EXCEPTIONS | (CONDITIONS if name in REMAINDERS else C2)
        # The exact logarithm of a power of two is inexact for AMD's CPUs.
        looked_at &= ~(0x20 if name == "fyl2x" and not found.status & EXCEPTIONS else 0)
        assert not (status ^ found.status) & looked_at, wrong
        numbers = [(found.number, top)] if found.pushed is None else [(found.pushed, top), (found.number, second)]
        for ours, theirs in numbers:
            exact = name in REMAINDERS or ours.is_nan or ours.is_infinite
            assert ours == theirs or (not exact and ours.sign == theirs.sign and apart(ours, theirs) <= 1), wrong
    assert compared > CASES // 3


@engines
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize("name", NAMES)
def test_a_guest_executes_it(isa, name, accelerated):
    """The stack, the status word and the count of instructions are as after any instruction."""
    guest = FunctionGuest(ISAS[isa], code(NAMES[name]), accelerated=accelerated)
    place, destination = guest.allocate(96), ISAS[isa].registers.registers[7].name
    st0, st1 = Extended(0, BIAS - 1, 0xC123_4567_89AB_CDEF), Extended(1, BIAS - 3, 0xA987_6543_2101_2345)
    guest.engine.memory.write(place, packed(st1) + packed(st0) + struct.pack("<H", 0x37F))
    before = guest.engine.instructions
    guest.engine.write_register(destination, place)
    guest.call(place)
    assert guest.engine.instructions - before == 11  # with the instruction at which the return lands
    found, operation = result(NAMES[name], st0, st1, Rounding.NEAREST), OPERATIONS[NAMES[name]]
    data = guest.engine.memory.read(place, 96)
    stack = [found.number] if operation.pops else [found.number, st1]
    stack = [found.pushed, *stack] if found.pushed is not None else stack
    assert unpacked(data[48:]) == stack[0]
    if len(stack) > 1:
        assert unpacked(data[64:]) == stack[1]
    status = struct.unpack_from("<H", data, 34)[0]
    assert status & (EXCEPTIONS | CONDITIONS) == found.status
    assert status >> 11 & 7 == 8 - len(stack)


@engines
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
@pytest.mark.parametrize("bits", [1 << 2, 1 << 3], ids=["emulated", "switched"])
def test_a_kernel_may_have_switched_it_off(isa, bits, accelerated):
    """Device not available, 7: as QEMU raises it for any instruction of the x87."""
    guest = FunctionGuest(ISAS[isa], code(NAMES["fprem"])[2:], accelerated=accelerated)
    unicorn = guest.engine.cpu.uc
    unicorn.reg_write(UC_X86_REG_CR0, unicorn.reg_read(UC_X86_REG_CR0) | bits)
    with pytest.raises(Exception, match="exception 7"):
        guest.call()
