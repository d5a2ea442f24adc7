"""The pair of interrupt controllers 8259A of a PC: 16 interrupts, of which 2 is the cascade.

| port | written | read |
| --- | --- | --- |
| 0x20, 0xa0 | ICW1, OCW2 (end of interrupt), OCW3 (what is read here) | requests, or those being served |
| 0x21, 0xa1 | ICW2 to ICW4 after ICW1, else OCW1: the mask | the mask |

Requests are levels: one that is still high after the end of its interrupt is delivered again.

Source: Intel 8259A data sheet.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected

_ICW1, _OCW3, _EOI, _SPECIFIC, _READ_REGISTER = 0x10, 0x08, 0x20, 0x40, 0x02
_CASCADE: Final = 2
# From the highest priority to the lowest.
_ORDER: Final = (0, 1, *range(8, 16), 3, 4, 5, 6, 7)
# Words that follow ICW1.
_INITIALISATION: Final = 3
_CHIP: Final = 8


class I8259Pair(Device):
    """The two controllers; offsets are 0 and 1 of the first, 2 and 3 of the second controller."""

    kept = ("_levels", "_latched", "_served", "_mask", "_bases", "_expected", "_reads_served")

    def __init__(self, line: Line = unconnected) -> None:
        self._line = line
        self._levels = self._latched = self._served = 0
        self._mask = 0xFFFF
        self._bases = [0, 0]
        """Vector of each controller's first interrupt."""
        self._expected = [0, 0]
        """The number of initialisation words that each still expects."""
        self._reads_served = [0, 0]

    def source(self, number: int) -> Line:
        """Return the line of an interrupt."""

        def line(level: bool) -> None:
            self._levels = self._levels & ~(1 << number) | level << number
            self._update()

        return line

    def pulse(self, number: int) -> None:
        """Request an interrupt by an edge."""
        self._latched |= 1 << number
        self._update()

    def pending(self) -> int | None:
        """Return the interrupt to be delivered next, None if there is none."""
        waiting = (self._levels | self._latched) & ~self._mask
        if self._mask >> _CASCADE & 1:
            waiting &= 0xFF
        for number in _ORDER:
            if self._served >> number & 1:
                return None
            if waiting >> number & 1:
                return number
        return None

    def _update(self) -> None:
        self._line(self.pending() is not None)

    def acknowledge(self) -> int:
        """Return the vector of the pending interrupt, and mark it as being served.

        Raises ValueError if none is pending.
        """
        number = self.pending()
        if number is None:
            raise ValueError("no interrupt is pending")
        self._latched &= ~(1 << number)
        self._served |= 1 << number
        self._update()
        return self._bases[number // _CHIP] + number % _CHIP

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are a byte)
        """Return a register."""
        chip = offset // 2
        requests = self._served if self._reads_served[chip] else self._levels | self._latched
        bits = self._mask if offset % 2 else requests
        return bits >> _CHIP * chip & 0xFF

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are a byte)
        """Write a register."""
        chip = offset // 2
        mine = 0xFF << _CHIP * chip
        if offset % 2:
            self._write_data(chip, value & 0xFF)
        elif value & _ICW1:
            self._expected[chip] = _INITIALISATION
            self._mask &= ~mine
            self._served &= ~mine
            self._latched &= ~mine
        elif value & _OCW3:
            if value & _READ_REGISTER:
                self._reads_served[chip] = value & 1
        elif value & _EOI:
            served = self._served & mine
            lowest = 1 << _CHIP * chip + (value & 7) if value & _SPECIFIC else served & -served
            self._served &= ~lowest
        self._update()

    def _write_data(self, chip: int, value: int) -> None:
        if self._expected[chip] == _INITIALISATION:
            self._bases[chip] = value & 0xF8
        if self._expected[chip]:
            self._expected[chip] -= 1
        else:
            self._mask = self._mask & ~(0xFF << _CHIP * chip) | value << _CHIP * chip
