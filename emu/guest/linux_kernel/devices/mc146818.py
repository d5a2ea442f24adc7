"""The clock and CMOS memory MC146818 of a PC: ports 0x70 (register number) and 0x71 (register).

The clock shows the time in decimal digits, 24 hours; the rest of the memory is 0.

Source: Motorola MC146818A data sheet.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from emu.guest.linux_kernel.devices.device import Device

# Registers A (32 kHz), B (24 hours), D (the battery is charged), and the one where PCs keep the century.
_A, _B, _D, _CENTURY = 0x0A, 0x0B, 0x0D, 0x32
_FIXED: Final = {_A: 0x26, _B: 0x02, _D: 0x80}


class Mc146818(Device):
    """The clock; `wall` returns seconds since 1970."""

    kept = ("_index",)

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall
        self._index = 0

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are a byte)
        """Return the selected register."""
        if offset == 0:
            return self._index
        now = datetime.fromtimestamp(self._wall(), UTC)
        digits = {
            0: now.second, 2: now.minute, 4: now.hour, 6: now.isoweekday() % 7 + 1, 7: now.day, 8: now.month,
            9: now.year % 100, _CENTURY: now.year // 100,
        }  # fmt: skip
        if self._index in digits:
            return digits[self._index] // 10 << 4 | digits[self._index] % 10
        return _FIXED.get(self._index, 0)

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are a byte)
        """Select a register; writes to registers are ignored."""
        if offset == 0:
            self._index = value & 0x7F
