"""Signals that are read from a file (signalfd).  Source: Linux fs/signalfd.c."""

# ruff: noqa: ARG002  (there are no offsets, whatever is given)

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux.errno import EAGAIN, LinuxError
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.open_file import POLLIN, AnonymousOpen
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Thread
from emu.guest.linux.signal.deliver import Delivery
from emu.isa.linux_signals import SI_TIMER, Signal, SignalInfo

# struct signalfd_siginfo: signo, errno, code, pid, uid, fd, tid, band, overrun, trapno, status, int, ptr, utime, stime,
# addr, and what fills it up to 128 bytes.
_RECORD: Final = struct.Struct("<IiiIIiIIIIiiQQQQ48x")


class SignalFile(AnonymousOpen):
    """Reads the pending signals of a set; those of the thread that waits for it."""

    smallest_read = _RECORD.size

    def __init__(self, inode: Inode, flags: int, tasks: Tasks, delivery: Delivery, mask: int) -> None:
        super().__init__(inode, flags, "anon_inode:[signalfd]")
        self._tasks = tasks
        self._delivery = delivery
        self.mask = mask
        self._thread: Thread | None = None
        self._before = 0

    def attend(self) -> None:
        """Look at the signals of the thread that runs from now on."""
        self._thread = self._tasks.current

    def _waiting(self) -> int:
        if self._thread is None:
            return 0
        queues = (self._thread.pending, self._thread.process.pending)
        return sum(self.mask >> info.number - 1 & 1 for queue in queues for info in queue)

    def events(self) -> int:
        """Return what poll says."""
        return POLLIN if self._waiting() else 0

    def wakeups(self, events: int) -> int:
        """Return how often waiting threads were woken: once for each signal."""
        waiting = self._waiting()
        self.arrivals += max(0, waiting - self._before)
        self._before = waiting
        return self.arrivals

    def read_ready(self) -> bool:
        """Return whether a signal waits."""
        return self._waiting() > 0

    def read(self, size: int, offset: int | None = None) -> bytes:
        """Take as many signals as fit.  Raises `LinuxError` EAGAIN."""
        data = b""
        while self._thread is not None and len(data) + _RECORD.size <= size:
            info = self._delivery.take(self._thread, self.mask)
            if info is None:
                break
            data += packed(info)
        if not data:
            raise LinuxError(EAGAIN)
        return data


def packed(info: SignalInfo) -> bytes:
    """Return a signal as struct signalfd_siginfo."""
    timer = info.code == SI_TIMER
    child = info.number == Signal.SIGCHLD
    number = (info.value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000
    return _RECORD.pack(
        info.number, 0, info.code, 0 if timer else info.pid, 0 if timer else info.uid, 0, info.pid if timer else 0, 0,
        info.uid if timer else 0, 0, info.status if child else 0, number, info.value, 0, 0, info.address or 0,
    )  # fmt: skip
