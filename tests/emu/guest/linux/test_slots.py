"""Slots in which copies of instructions run."""

from __future__ import annotations

import pytest

from emu.guest.linux.mm.user_code import SlotPages
from emu.isa import ISAS
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu

SIZE = 64


@pytest.mark.parametrize("isa", ISAS)
def test_a_slot_has_nothing_of_what_was_in_it_before(isa):
    cpu = TrialCpu(ISAS[isa], [Stretch(0x40_0000, bytes(16))], stepping=False)
    code = cpu.kernel.code(cpu.process)
    slots = SlotPages(code, SIZE, "[slots]")
    first, second = slots.take(), slots.take()
    slots.fill(first, b"\x11" * SIZE)
    slots.fill(second, b"\x22" * SIZE)
    slots.give_back(first)
    assert slots.take() == first
    slots.fill(first, b"\x33")
    assert code.read(first, 2 * SIZE) == b"\x33" + bytes(SIZE - 1) + b"\x22" * SIZE
