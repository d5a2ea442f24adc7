"""System calls that make event counters and read signals from files.

Source: Linux fs/eventfd.c, fs/signalfd.c.
"""

from __future__ import annotations

from typing import Final

from emu.guest.linux.calls.table import Address, Caller, Int, Size, Unsigned, call
from emu.guest.linux.errno import EINVAL, LinuxError
from emu.guest.linux.fs.eventfd import EventCounter
from emu.guest.linux.fs.inode import Anonymous
from emu.guest.linux.fs.open_file import O_CLOEXEC, O_NONBLOCK, O_RDWR
from emu.guest.linux.fs.signalfd import SignalFile
from emu.isa.linux_signals import UNBLOCKABLE

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


@call("signalfd4")
def signalfd4(c: Caller, fd: Int, mask: Address, size: Size, flags: Int) -> int:
    """Make a file from which signals are read, or change the signals of one."""
    if flags & ~(O_CLOEXEC | O_NONBLOCK) or size != 8:
        raise LinuxError(EINVAL)
    wanted = c.number(mask) & ~UNBLOCKABLE
    if fd == -1:
        file = SignalFile(Anonymous(), O_RDWR | flags & O_NONBLOCK, c.kernel.tasks, c.kernel.delivery, wanted)
        file.attend()
        return c.process.files.add(file, close_on_exec=bool(flags & O_CLOEXEC))
    known = c.file(fd)
    if not isinstance(known, SignalFile):
        raise LinuxError(EINVAL)
    known.mask = wanted
    return fd


@call("signalfd")
def signalfd(c: Caller, fd: Int, mask: Address, size: Size) -> int:
    """Make a file from which signals are read."""
    return signalfd4(c, fd, mask, size, 0)
