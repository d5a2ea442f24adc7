"""The pending signals of a thread: its own, and those of its process.

Source: Linux kernel/signal.c.
"""

from __future__ import annotations

from collections import deque

from emu.guest.linux.process.process import Action, Thread
from emu.isa.linux_signals import DEFAULT, IGNORE, IGNORED, UNBLOCKABLE, SignalInfo


def bit(number: int) -> int:
    """Return a signal's bit in a mask."""
    return 1 << number - 1


def is_ignored(action: Action, number: int) -> bool:
    """Return whether a signal does nothing with this action."""
    return action.handler == IGNORE or (action.handler == DEFAULT and number in IGNORED)


def has_signal(thread: Thread) -> bool:
    """Return whether a signal is pending that the thread does not block."""
    return next_signal(thread) is not None


def next_signal(thread: Thread) -> tuple[deque[SignalInfo], SignalInfo] | None:
    """Return the signal that the thread takes next, and the queue it is in.

    The thread's own signals come first, then the lowest number.
    """
    if not thread.pending and not thread.process.pending:
        return None
    for queue in (thread.pending, thread.process.pending):
        open_ones = [info for info in queue if not thread.mask & bit(info.number) & ~UNBLOCKABLE]
        if open_ones:
            return queue, min(open_ones, key=lambda info: info.number)
    return None


def next_of(thread: Thread, wanted: int) -> tuple[deque[SignalInfo], SignalInfo] | None:
    """Return the lowest pending signal of a set, blocked or not, and the queue it is in."""
    for queue in (thread.pending, thread.process.pending):
        of_set = [info for info in queue if wanted & bit(info.number)]
        if of_set:
            return queue, min(of_set, key=lambda info: info.number)
    return None
