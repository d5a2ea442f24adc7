"""The words of a virtual clock, which Python and machine code share."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


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


class ClockState(NamedTuple):
    """The state of a clock for which the deadlines of a run were computed."""

    address: int
    """The address of its words; 0: the deadlines belong to no clock."""
    hidden: int
    """As an unsigned word: it is negative while an instruction counts that was not executed."""
    skipped: int


NO_CLOCK: Final = ClockState(0, 0, 0)
