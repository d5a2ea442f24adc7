"""Events in the life of processes, for those who probe them.

Each guest has its own kinds of process, thread and area.  An observer says by its type parameters
which it can take: those of one guest (`emu.guest.linux.process.LinuxObserver`), or what all guests
have in common (`emu.guest.processes.ProcessObserver`).

The Linux guest reports all events except `again` and `uncover`.  The kernel guest reports forks,
execs, ends, signals and helpers, and `again` and `uncover`.
"""

# ruff: noqa: D401  (an observer defines what it wants to hear; a docstring says what has happened)

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from emu.isa.linux_signals import SignalInfo


# An observer of any process is one of a guest's own processes too, so the parameters are contravariant.
Process = TypeVar("Process", contravariant=True)  # noqa: PLC0105  the signatures below read better without a suffix
Thread = TypeVar("Thread", contravariant=True)  # noqa: PLC0105
Area = TypeVar("Area", contravariant=True)  # noqa: PLC0105


class Observer(ABC, Generic[Process, Thread, Area]):
    """Hears of events in the life of processes, in the order in which they happen."""

    def mapped(self, process: Process, area: Area) -> None:
        """An area was mapped."""

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Areas, or parts of them, are about to go away; their pages are still there."""

    def born(self, maker: Thread, thread: Thread) -> None:
        """A thread was made, of the same process or as the first of another.

        `maker` is the current thread.
        """

    def forked(self, parent: Process, child: Process) -> None:
        """A child was made, with a copy of its parent's memory."""

    def before_exec(self, process: Process) -> None:
        """A process is about to run something else: its memory is about to go away."""

    def executed(self, process: Process) -> None:
        """A process runs something else, from its first instruction on."""

    def exited(self, process: Process) -> None:
        """A process has ended; its memory is still there."""

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """The current thread's instruction faulted: put right what a probe displaced.

        Return the signal to send.
        """
        del thread
        return info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Return whether a signal may be delivered to the current thread where it stands."""
        del thread
        return True

    def helper_added(self, process: Process, module: str, load_address: int, dof: int, generation: int) -> None:
        """A process has told of its probes.

        An object's name, where it was loaded, and where its DOF is.
        """

    def helper_removed(self, process: Process, generation: int) -> None:
        """A process takes back what it told under a number."""

    def signalled(self, thread: Thread) -> None:
        """A signal is about to be delivered to the current thread where it stands."""

    def again(self, thread: Thread, address: int) -> None:
        """The page that emulating the instruction at an address has missed is there.

        The thread will hit it again.
        """

    def uncover(self, thread: Thread, address: int) -> None:
        """There is no such page.

        The thread is to run into the fault of the instruction at an address itself.
        """

    def thread_ended(self, thread: Thread) -> None:
        """A thread has ended."""

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """A system call begins."""

    def system_call_done(self, thread: Thread, name: str, result: int) -> None:
        """A system call is over."""
