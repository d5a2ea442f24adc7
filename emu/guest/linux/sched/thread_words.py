"""The current thread in words that machine code reads.

Threads and processes are objects of Python.  While a program runs, or a probe of a system call
fires, they do not change, so that the first who asks for the thread leaves it in these words until
the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from emu.guest.base import Thread
from emu.support.plain import address_of, words
from emu.support.words import WORD_MASK

_WORD: Final = 8
# Bytes of the name: at least as many as `emu.native.guest.NAME_SIZE`.
_NAME_SIZE: Final = 24
# Ancestors that are kept.
_MOST: Final = 8


class ThreadWord(IntEnum):
    """The words of the current thread."""

    STATE = 0
    """Whether a program runs, and whether the others are those of its thread: `ThreadState`."""
    ADDRESS = 1
    TID = 2
    PID = 3
    PPID = 4
    UID = 5
    GID = 6
    ERRNO = 7
    TIME = 8
    """Nanoseconds that it has been on a CPU before this run."""
    NAME = 9
    """The name, in `_NAME_SIZE` bytes."""
    GENERATIONS = NAME + _NAME_SIZE // _WORD
    """The number of ancestors beyond the parent; all ones: too many for these words."""
    ANCESTORS = GENERATIONS + 1
    """Their pids, the nearest first."""


class ThreadState(IntEnum):
    """See `ThreadWord.STATE`."""

    STOPPED = 0
    RUNNING = 1
    KNOWN = 2


_STATE: Final = int(ThreadWord.STATE)
NUMBERS: Final = {
    "address": ThreadWord.ADDRESS,
    "tid": ThreadWord.TID,
    "pid": ThreadWord.PID,
    "ppid": ThreadWord.PPID,
    "uid": ThreadWord.UID,
    "gid": ThreadWord.GID,
    "errno": ThreadWord.ERRNO,
}


class ThreadWords:
    """The current thread as machine code sees it."""

    def __init__(self) -> None:
        self._words = words(ThreadWord.ANCESTORS + _MOST)
        self._bytes = self._words.cast("B")
        self.address = address_of(self._words)
        """The address of the words."""

    def running(self) -> None:
        """Say that a program begins to run."""
        self._words[_STATE] = ThreadState.RUNNING

    def stopped(self) -> None:
        """Say that no program runs: what is known may change."""
        self._words[_STATE] = ThreadState.STOPPED

    def show(self, thread: Thread, time: int, ancestors: Iterable[int]) -> None:
        """Show the thread that runs, until the run ends.

        `time` is in nanoseconds; `ancestors` are pids, those of the parent's parent and on.
        """
        if self._words[_STATE] != ThreadState.RUNNING:
            return
        for number, word in NUMBERS.items():
            self._words[word] = getattr(thread, number) & WORD_MASK
        self._words[ThreadWord.TIME] = time
        name = thread.execname.encode("utf-8", "surrogateescape")[: _NAME_SIZE - 1]
        start = _WORD * ThreadWord.NAME
        self._bytes[start : start + _NAME_SIZE] = name.ljust(_NAME_SIZE, b"\0")
        known = [pid for pid, _ in zip(ancestors, range(_MOST + 1), strict=False)]
        self._words[ThreadWord.GENERATIONS] = len(known) if len(known) <= _MOST else WORD_MASK
        for place, pid in enumerate(known[:_MOST]):
            self._words[ThreadWord.ANCESTORS + place] = pid
        self._words[_STATE] = ThreadState.KNOWN
