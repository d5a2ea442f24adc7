"""The words of a virtual clock, which Python and machine code share."""

from __future__ import annotations

from enum import IntEnum


class ClockWord(IntEnum):
    """The words of a clock, which machine code reads (`emu.engine.native_clock`)."""

    HIDDEN = 0
    """Number of instructions that take no time."""
    SKIPPED = 1
    """Nanoseconds in which no instruction ran."""
    STANDS = 2
    """1 while the clock is stopped."""
    PAUSED = 3
    """The count of instructions at which it was stopped."""
