"""The platform-level interrupt controller of RISC-V, with one context: supervisor mode of hart 0.

| offset | register |
| --- | --- |
| 0x000000 + 4 s | priority of source s |
| 0x001000 | pending bits |
| 0x002000 | enable bits of the context |
| 0x200000 | threshold of the context |
| 0x200004 | claim: a read claims the pending source; a write completes it |

Source: RISC-V Platform-Level Interrupt Controller specification 1.0.0.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux_kernel.devices.device import Device, Line, unconnected

SIZE: Final = 0x40_0000
SOURCES: Final = 31
_PENDING, _ENABLE, _THRESHOLD, _CLAIM = 0x1000, 0x2000, 0x20_0000, 0x20_0004


class Plic(Device):
    """The controller of one hart; `line` is the hart's external interrupt."""

    kept = ("_levels", "_enabled", "_claimed", "_priorities", "_threshold")

    def __init__(self, line: Line = unconnected) -> None:
        self._line = line
        self._levels = self._enabled = self._claimed = self._threshold = 0
        self._priorities = [0] * (SOURCES + 1)

    def source(self, number: int) -> Line:
        """Return the line of a source."""

        def line(level: bool) -> None:
            self._levels = self._levels & ~(1 << number) | level << number
            self._update()

        return line

    def _best(self) -> int:
        """Return the source that would be claimed, 0 for none.

        It is the one with the highest priority; of several, the one with the lowest number.
        """
        waiting = self._levels & self._enabled & ~self._claimed
        ready = [s for s in range(1, SOURCES + 1) if waiting >> s & 1 and self._priorities[s] > self._threshold]
        return max(ready, key=lambda source: (self._priorities[source], -source), default=0)

    def _update(self) -> None:
        self._line(self._best() != 0)

    def read(self, offset: int, size: int) -> int:  # noqa: ARG002  (registers are words)
        """Return a register."""
        if offset == _CLAIM:
            source = self._best()
            self._claimed |= 1 << source if source else 0
            self._update()
            return source
        if offset < 4 * len(self._priorities):
            return self._priorities[offset // 4]
        return {_PENDING: self._levels & ~self._claimed, _ENABLE: self._enabled, _THRESHOLD: self._threshold}.get(
            offset, 0
        )

    def write(self, offset: int, size: int, value: int) -> None:  # noqa: ARG002  (registers are words)
        """Write a register."""
        if offset == _CLAIM:
            self._claimed &= ~(1 << value)
        elif offset == _ENABLE:
            self._enabled = value & ~1
        elif offset == _THRESHOLD:
            self._threshold = value
        elif offset < 4 * len(self._priorities):
            self._priorities[offset // 4] = value
        self._update()
