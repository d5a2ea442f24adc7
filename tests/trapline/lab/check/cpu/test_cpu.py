"""The CPUs that are compared: what of their state is, and what is not."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from emu.native import available
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu


@pytest.mark.skipif(not available(), reason="without llvmlite registers are read one by one")
@pytest.mark.parametrize(
    ("isa", "file", "last"),
    [
        ("x86_64", 0, 0x40 + 15),
        ("i386", 0, 0x40 + 15),
        ("x86_64", 1, 0x10 + 9),
        ("i386", 1, 0x10 + 9),
        ("aarch64", 0, 0x100 + 15),
    ],
)
def test_bytes_between_registers_are_not_compared(isa, file, last):
    """`last` is the offset of the last byte of the second register."""
    one, other = (TrialCpu(ISAS[isa], [Stretch(0x40_0000, bytes(64))], stepping=True) for _ in range(2))
    for place in (one.engine.cpu.vectors()[file], other.engine.cpu.vectors()[file]):
        place[:] = bytes(len(place))
    other.engine.cpu.vectors()[file][last + 1] = 1
    assert one.same_registers(other)
    assert one.vectors() == other.vectors()
    other.engine.cpu.vectors()[file][last] = 1
    assert not one.same_registers(other)
    assert one.vectors() != other.vectors()


@pytest.mark.skipif(not available(), reason="without llvmlite registers are read one by one")
def test_registers_that_follow_each_other_have_no_bytes_between_them():
    cpu = TrialCpu(ISAS["riscv64"], [Stretch(0x40_0000, bytes(64))], stepping=True)
    cpu.engine.cpu.vectors()[0][:] = bytes([1]) * 256
    assert cpu.vectors() == [bytes([1]) * 256]
