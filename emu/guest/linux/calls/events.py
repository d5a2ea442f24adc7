"""System calls that make event counters.  Source: Linux fs/eventfd.c."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Caller, Unsigned, call
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.eventfd import EventCounter
from emu.guest.linux.files import O_CLOEXEC, O_NONBLOCK, O_RDWR
from emu.guest.linux.inodes import Anonymous

_SEMAPHORE: Final = 1


@call("eventfd2")
def eventfd2(c: Caller, count: Unsigned, flags: Unsigned) -> int:
    """Make an event counter."""
    if flags & ~(_SEMAPHORE | O_CLOEXEC | O_NONBLOCK):
        raise LinuxError(EINVAL)
    file = EventCounter(Anonymous(), O_RDWR | flags & O_NONBLOCK, count, semaphore=bool(flags & _SEMAPHORE))
    return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))


@call("eventfd")
def eventfd(c: Caller, count: Unsigned) -> int:
    """Make an event counter."""
    return eventfd2(c, count, 0)
