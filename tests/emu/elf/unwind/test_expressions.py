"""Expressions of call frame information."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.elf.unwind.expressions import evaluate
from emu.elf.unwind.reader import FrameError
from emu.support.words import BadAddressError

REGISTERS = {7: 0x1000, 16: 0x401026}


def load(address, size):
    if address >= 1 << 63:
        raise BadAddressError(address)
    return (address + size) & ((1 << 8 * size) - 1)


def test_the_frame_of_an_x86_plt_entry_depends_on_the_pc():
    # breg7 8; breg16 0; lit15; and; lit10; ge; lit3; shl; plus: what linkers write for .plt
    code = bytes.fromhex("77088000 3f1a 3a2a 3324 22".replace(" ", ""))
    assert evaluate(code, REGISTERS, load, 8) == 0x1008
    assert evaluate(code, {**REGISTERS, 16: 0x40102B}, load, 8) == 0x1010


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("3531 1c", 4),
        ("3135 1c", (1 << 64) - 4),
        ("3635 1e", 30),
        ("09ff 32 1b", 0),
        ("09fe 32 1b", (1 << 64) - 1),
        ("3731 32 1d", 1),
        ("3132 16 1c", 1),
        ("313233 17", 2),
        ("3132 14 22", 3),
        ("313233 1502", 1),
        ("09ff 31 26", (1 << 64) - 1),
        ("31 280400 35 2f0100 36", 6),
        ("30 280400 35 2f0100 36", 5),
        ("7708 9404", 0x100C),
        ("08ff 20", (1 << 64) - 256),
        ("23ff01", None),
    ],
)
def test_operations(code, value):
    code = bytes.fromhex(code.replace(" ", ""))
    if value is None:
        with pytest.raises(FrameError):
            evaluate(code, REGISTERS, load, 8)
    else:
        assert evaluate(code, REGISTERS, load, 8) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(code):
    with contextlib.suppress(FrameError, BadAddressError):
        assert evaluate(code, REGISTERS, load, 8, 5) <= (1 << 64) - 1


def test_an_expression_that_jumps_for_ever_is_refused():
    with pytest.raises(FrameError, match="without an end"):
        evaluate(bytes.fromhex("312ffcff"), REGISTERS, load, 8)
