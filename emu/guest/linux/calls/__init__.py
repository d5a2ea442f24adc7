"""The system calls, by theme; importing this package fills the table."""

from __future__ import annotations

from emu.guest.linux.calls import (
    changing,
    futexes,
    identity,
    killing,
    looking,
    memory,
    opening,
    processes,
    reading,
    signalling,
    system,
    thirty_two,
    timing,
)
from emu.guest.linux.calls.table import HANDLERS

__all__ = [
    "HANDLERS",
    "changing",
    "futexes",
    "identity",
    "killing",
    "looking",
    "memory",
    "opening",
    "processes",
    "reading",
    "signalling",
    "system",
    "thirty_two",
    "timing",
]
