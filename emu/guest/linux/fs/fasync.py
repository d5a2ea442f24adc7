"""Signals that tell the owner of a file of its events (O_ASYNC).

A file counts how often its owner was to be told. The counts of the files with O_ASYNC are looked at
after each system call.  Source: Linux fs/fcntl.c (kill_fasync, send_sigio).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from emu.guest.linux.fs.open_file import (
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    POLLRDNORM,
    POLLWRBAND,
    POLLWRNORM,
    Notices,
    OpenFile,
)
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Process, Thread
from emu.guest.linux.signal.send import Sending
from emu.isa.linux_signals import SI_KERNEL, SI_SIGIO, Signal, SignalInfo

# Kinds of owners (F_SETOWN_EX).
OF_THREAD, OF_PROCESS, OF_GROUP = range(3)


class _Kind(NamedTuple):
    """How siginfo_t tells of an event: si_code and si_band (band_table)."""

    code: int
    band: int


# By the fields of `Notices`: POLL_IN, POLL_OUT, POLL_HUP.
_KINDS: Final = (
    _Kind(1, POLLIN | POLLRDNORM),
    _Kind(2, POLLOUT | POLLWRNORM | POLLWRBAND),
    _Kind(6, POLLHUP | POLLERR),
)
# Signals whose own codes begin at 1: for them the code does not tell the event (sig_specific_sicodes).
_WITH_CODES: Final = frozenset(
    {Signal.SIGILL, Signal.SIGFPE, Signal.SIGSEGV, Signal.SIGBUS, Signal.SIGTRAP, Signal.SIGCHLD, Signal.SIGSYS}
)


@dataclass(slots=True)
class _Asked:
    """A file whose owner gets signals."""

    fd: int
    seen: Notices


class AsyncFiles:
    """The files of one kernel whose owners are told of events."""

    def __init__(self, tasks: Tasks, sending: Sending) -> None:
        self._tasks = tasks
        self._sending = sending
        self._files: dict[OpenFile, _Asked] = {}

    def __bool__(self) -> bool:
        return bool(self._files)

    def set(self, file: OpenFile, fd: int, *, on: bool) -> None:
        """Report the owner of a file from now on, or no longer; `fd` is what the signal calls it."""
        notices = file.notices()
        if on and notices is not None:
            known = self._files.setdefault(file, _Asked(fd, notices))
            known.fd = fd
        elif not on:
            self._files.pop(file, None)

    def look(self) -> None:
        """Send the signals for what has happened since the last time."""
        for file, known in list(self._files.items()):
            notices = file.notices() if file.users else None
            if notices is None:
                del self._files[file]
                continue
            if notices != known.seen:
                before, known.seen = known.seen, notices
                for kind, now, then in zip(_KINDS, notices, before, strict=True):
                    if now > then:
                        self._tell(file, known.fd, kind)

    def _tell(self, file: OpenFile, fd: int, kind: _Kind) -> None:
        number = file.signal
        if number:
            code = SI_SIGIO if number in _WITH_CODES else kind.code
            info = SignalInfo(number, code, band=kind.band, fd=fd)
        else:
            info = SignalInfo(Signal.SIGIO, SI_KERNEL)
        what, owner = file.owner
        if what == OF_THREAD:
            thread = self._tasks.threads.get(owner)
            if thread is not None and self._may(file, thread.process):
                self._sending.send_thread(thread, info)
            return
        for process in self._processes(what, owner):
            if self._may(file, process):
                self._sending.send(process, info)

    def _processes(self, what: int, owner: int) -> Iterable[Process]:
        if what == OF_GROUP:
            return self._tasks.group(owner) if owner else []
        process = self._tasks.processes.get(owner)
        return [] if process is None else [process]

    @staticmethod
    def _may(file: OpenFile, process: Process) -> bool:
        """Return whether who has set the owner may send it a signal (sigio_perm)."""
        real, effective = file.owner_set_by
        theirs = process.credentials.user
        return not effective or not {real, effective}.isdisjoint({theirs.real, theirs.saved})


def current_owner(thread: Thread) -> tuple[int, int]:
    """Return the real and the effective user who sets an owner."""
    user = thread.process.credentials.user
    return user.real, user.effective
