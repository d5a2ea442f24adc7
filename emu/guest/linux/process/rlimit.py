"""Resource limits of a process, and what it has used.

Source: Linux include/asm-generic/resource.h, kernel/sys.c.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from emu.guest.linux.time.alarms import Countdown

INFINITE: Final = (1 << 64) - 1
CPU, FSIZE, DATA, STACK, CORE, RSS, NPROC, NOFILE, MEMLOCK, AS = range(10)
NICE: Final = 13
_MOST_FILES: Final = 1 << 20


class Limit(NamedTuple):
    """A limit: the soft limit, and the hard limit, up to which a process may raise it."""

    soft: int = INFINITE
    hard: int = INFINITE


# The names and units of /proc/PID/limits, by number (fs/proc/base.c).
NAMES: Final = (
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
)
_AT_START: Final = {
    STACK: Limit(8 << 20),
    CORE: Limit(0),
    NPROC: Limit(31_000, 31_000),
    NOFILE: Limit(1024, _MOST_FILES),
    MEMLOCK: Limit(8 << 20, 8 << 20),
    11: Limit(31_000, 31_000),
    12: Limit(819_200, 819_200),
    NICE: Limit(0, 0),
    14: Limit(0, 0),
}


class Limits:
    """The limits of one process; those that are not set are infinite."""

    def __init__(self, known: dict[int, Limit] | None = None) -> None:
        self._limits = dict(_AT_START if known is None else known)
        self.cpu: Countdown | None = None
        """Ends a process that has used its CPU time; None: it has no such limit."""

    def __getitem__(self, resource: int) -> Limit:
        return self._limits.get(resource, Limit())

    def __setitem__(self, resource: int, limit: Limit) -> None:
        self._limits[resource] = limit

    def copy(self) -> Limits:
        """Return the same limits for a child."""
        return Limits(self._limits)
