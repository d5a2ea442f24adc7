"""The CPUs that are compared: what of their state is, and what is not."""

from __future__ import annotations

import pytest

from emu.isa import ISAS
from emu.native import available
from trapline.lab.check.cpu import Stretch, TrialCpu


@pytest.mark.skipif(not available(), reason="without llvmlite registers are read one by one")
@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_bytes_between_the_x87s_registers_are_not_compared(isa):
    one, other = (TrialCpu(ISAS[isa], [Stretch(0x40_0000, bytes(64))], stepping=True) for _ in range(2))
    for place in (one.engine.vectors()[1], other.engine.vectors()[1]):
        place[:] = bytes(len(place))
    other.engine.vectors()[1][26] = 1  # behind the ten bytes of the second one
    assert one.same_registers(other)
    assert one.vectors() == other.vectors()
    other.engine.vectors()[1][25] = 1
    assert not one.same_registers(other)
    assert one.vectors() != other.vectors()
