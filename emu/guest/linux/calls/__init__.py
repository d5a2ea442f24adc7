"""The system calls, by theme; importing this package fills the table."""

from __future__ import annotations

from emu.guest.linux.calls import (
    changing,
    controlling,
    epolling,
    events,
    futexes,
    identity,
    killing,
    looking,
    memory,
    messages,
    opening,
    piping,
    polling,
    processes,
    reading,
    signalling,
    socket_options,
    sockets,
    system,
    thirty_two,
    timing,
)
from emu.guest.linux.calls.table import HANDLERS

__all__ = [
    "HANDLERS",
    "changing",
    "controlling",
    "epolling",
    "events",
    "futexes",
    "identity",
    "killing",
    "looking",
    "memory",
    "messages",
    "opening",
    "piping",
    "polling",
    "processes",
    "reading",
    "signalling",
    "socket_options",
    "sockets",
    "system",
    "thirty_two",
    "timing",
]
