"""Events in the life of processes, for the providers that probe them.

Each guest has its own kinds of process, thread and area.  The type parameters of an observer say
which of these it can handle: those of one guest (`emu.guest.linux.process.process.LinuxObserver`),
or the common interface of all guests (`emu.guest.processes.ProcessObserver`).

The Linux guest reports all events except `again` and `uncover`.  The kernel guest reports forks,
execs, ends, signals and helpers, and `again` and `uncover`.
"""

# ruff: noqa: D401  (a method handles an event; its docstring describes the event)

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from emu.isa.linux_signals import SignalInfo


# An observer of all processes can also observe those of one guest, so the parameters are contravariant.
Process = TypeVar("Process", contravariant=True)  # noqa: PLC0105  the signatures below read better without a suffix
Thread = TypeVar("Thread", contravariant=True)  # noqa: PLC0105
Area = TypeVar("Area", contravariant=True)  # noqa: PLC0105


class Observer(ABC, Generic[Process, Thread, Area]):
    """Receives the events in the life of processes, in their order."""

    def mapped(self, process: Process, area: Area) -> None:
        """An area was mapped."""

    def unmapped(self, process: Process, areas: Sequence[Area]) -> None:
        """Areas, or parts of them, are about to be unmapped; their pages are still there."""

    def born(self, maker: Thread, thread: Thread) -> None:
        """A thread was created, in the same process or as the first of another.

        `maker` is the current thread.
        """

    def forked(self, parent: Process, child: Process) -> None:
        """A child was created, with a copy of its parent's memory."""

    def before_exec(self, process: Process) -> None:
        """A process is about to run another program: its memory is about to be unmapped."""

    def executed(self, process: Process) -> None:
        """A process runs another program and is at its first instruction."""

    def exited(self, process: Process) -> None:
        """A process has ended; its memory is still there."""

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """The current thread's instruction faulted: correct the effects of a displaced instruction.

        Return the signal to send.
        """
        del thread
        return info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Return whether a signal may be delivered to the current thread at its current pc."""
        del thread
        return True

    def helper_added(self, process: Process, module: str, load_address: int, dof: int, generation: int) -> None:
        """A process has registered its probes (USDT).

        The arguments give the object's name, its load address, and the address of its DOF.
        """

    def helper_removed(self, process: Process, generation: int) -> None:
        """A process removes the probes that it registered, by their number."""

    def signalled(self, thread: Thread) -> None:
        """A signal is about to be delivered to the current thread at its current pc."""

    def again(self, thread: Thread, address: int) -> None:
        """The page is now present that was missing when the instruction at an address was emulated.

        The thread will hit the breakpoint again.
        """

    def uncover(self, thread: Thread, address: int) -> None:
        """The missing page does not exist.

        The thread must execute the instruction at an address itself, and take its fault.
        """

    def thread_ended(self, thread: Thread) -> None:
        """A thread has ended."""

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """A system call begins."""

    def system_call_done(self, thread: Thread, name: str, result: int) -> None:
        """A system call has ended."""
