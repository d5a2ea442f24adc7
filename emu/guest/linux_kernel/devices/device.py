"""The common part of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

# A line to an interrupt controller; it is called with its new level.
Line = Callable[[bool], object]


def unconnected(_level: bool) -> None:
    """Do nothing: the line is not connected."""


class Device:
    """A device.

    Registers are read and written at offsets in bytes, with a size of 1, 2, 4 or 8 bytes.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that are its state: numbers, bytes, and containers of these."""

    def read(self, offset: int, size: int) -> int:
        """Return a register; reading may have an effect."""
        raise NotImplementedError

    def write(self, offset: int, size: int, value: int) -> None:
        """Write a register."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Return the state, for a snapshot."""
        return {name: getattr(self, name) for name in self.kept}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        for name in self.kept:
            setattr(self, name, state[name])
