"""The system calls, by theme; importing this package fills the table."""

from __future__ import annotations

from emu.guest.linux.calls import memory, naming, processes, reading, signalling, system, timing
from emu.guest.linux.calls.table import HANDLERS

__all__ = ["HANDLERS", "memory", "naming", "processes", "reading", "signalling", "system", "timing"]
