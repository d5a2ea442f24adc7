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
    locking,
    looking,
    memory,
    messages,
    opening,
    pidfds,
    piping,
    polling,
    processes,
    reading,
    signalling,
    socket_options,
    sockets,
    system,
    thirty_two,
    timers,
    timing,
)
from emu.guest.linux.calls.table import HANDLERS

thirty_two.enter()

__all__ = [
    "HANDLERS",
    "changing",
    "controlling",
    "epolling",
    "events",
    "futexes",
    "identity",
    "killing",
    "locking",
    "looking",
    "memory",
    "messages",
    "opening",
    "pidfds",
    "piping",
    "polling",
    "processes",
    "reading",
    "signalling",
    "socket_options",
    "sockets",
    "system",
    "thirty_two",
    "timers",
    "timing",
]
