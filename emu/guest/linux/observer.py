"""What happens to processes, told to whoever probes them."""

# ruff: noqa: B027, D401  (an observer defines what it wants to hear; a docstring says what has happened)

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emu.guest.linux.abi.signals import SignalInfo
    from emu.guest.linux.process import Process, Thread
    from emu.guest.linux.space import Area


class Observer(ABC):  # noqa: B024  (nothing must be heard)
    """Hears of events in the life of processes, in the order in which they happen."""

    def mapped(self, process: Process, area: Area) -> None:
        """An area was mapped."""

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Areas, or parts of them, are about to go away; their pages are still there."""

    def born(self, maker: Thread, thread: Thread) -> None:
        """A thread was made, of the same process or as the first of another; `maker` is the current thread."""

    def forked(self, parent: Process, child: Process) -> None:
        """A child was made, with a copy of its parent's memory."""

    def before_exec(self, process: Process) -> None:
        """A process is about to run something else: its memory is about to go away."""

    def executed(self, process: Process) -> None:
        """A process runs something else, from its first instruction on."""

    def exited(self, process: Process) -> None:
        """A process has ended; its memory is still there."""

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """The current thread's instruction faulted: put right what a probe displaced; return the signal to send."""
        del thread
        return info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Tell whether a signal may be delivered to the current thread where it stands."""
        del thread
        return True

    def thread_ended(self, thread: Thread) -> None:
        """A thread has ended."""

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """A system call begins."""

    def system_call_done(self, thread: Thread, name: str, result: int) -> None:
        """A system call is over."""
