"""The virtual timer of Arm's generic timer: a comparator on the system counter.

    CTL   bit 0: enabled, bit 1: its interrupt is masked, bit 2: expired
    CVAL  the count at which it expires
    TVAL  the same, counted from now, in 32 bits with a sign

Its interrupt line is high while the timer is enabled, unmasked and expired.

Source: Arm ARM DDI 0487, D11.2 (the generic timer in AArch64 state).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected
from emu.support.words import WORD_MASK

_ON, _MASKED, _COME = 1, 2, 4
_SIGN: Final = 1 << 31
_HALF: Final = 0xFFFF_FFFF


class GenericTimer(Device):
    """One virtual timer; `count` returns the system counter."""

    kept = ("_control", "_compare", "_up")

    def __init__(self, count: Callable[[], int], line: Line = unconnected) -> None:
        self._count = count
        self._line = line
        self._control = self._compare = 0
        self._up = False

    @property
    def control(self) -> int:
        """CTL."""
        come = self._control & _ON and self._count() >= self._compare
        return self._control | (_COME if come else 0)

    @control.setter
    def control(self, value: int) -> None:
        """Write CTL."""
        self._control = value & (_ON | _MASKED)
        self.update()

    @property
    def compare(self) -> int:
        """CVAL."""
        return self._compare

    @compare.setter
    def compare(self, value: int) -> None:
        """Write CVAL."""
        self._compare = value
        self.update()

    @property
    def remaining(self) -> int:
        """TVAL."""
        return self._compare - self._count() & _HALF

    @remaining.setter
    def remaining(self, value: int) -> None:
        """Write TVAL."""
        self.compare = self._count() + (value & _HALF ^ _SIGN) - _SIGN & WORD_MASK

    def update(self) -> None:
        """Set the line to its current level."""
        control = self.control
        self._up = bool(control & _COME) and not control & _MASKED
        self._line(self._up)

    def due(self) -> int | None:
        """Return the count at which the line rises; None: it is high already, or will not rise."""
        return None if self._up or self._control != _ON else self._compare
