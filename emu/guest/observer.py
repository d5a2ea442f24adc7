"""Events in the life of processes, for those who probe them.

Each guest has its own kinds of process, thread and area (`emu.guest.processes` says what they have
in common), and does not tell everything: the kernel guest tells of forks, execs, ends and signals,
and asks to have a hit taken up again.
"""

# ruff: noqa: B027, D401  (an observer defines what it wants to hear; a docstring says what has happened)

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emu.isa.linux_signals import SignalInfo


class Observer(ABC):  # noqa: B024  (nothing must be heard)
    """Hears of events in the life of processes, in the order in which they happen."""

    def mapped(self, process: Any, area: Any) -> None:
        """An area was mapped."""

    def unmapped(self, process: Any, areas: Sequence[Any]) -> None:
        """Areas, or parts of them, are about to go away; their pages are still there."""

    def born(self, maker: Any, thread: Any) -> None:
        """A thread was made, of the same process or as the first of another.

        `maker` is the current thread.
        """

    def forked(self, parent: Any, child: Any) -> None:
        """A child was made, with a copy of its parent's memory."""

    def before_exec(self, process: Any) -> None:
        """A process is about to run something else: its memory is about to go away."""

    def executed(self, process: Any) -> None:
        """A process runs something else, from its first instruction on."""

    def exited(self, process: Any) -> None:
        """A process has ended; its memory is still there."""

    def faulted(self, thread: Any, info: SignalInfo) -> SignalInfo:
        """The current thread's instruction faulted: put right what a probe displaced.

        Return the signal to send.
        """
        del thread
        return info

    def may_be_interrupted(self, thread: Any) -> bool:
        """Return whether a signal may be delivered to the current thread where it stands."""
        del thread
        return True

    def helper_added(self, process: Any, module: str, load_address: int, dof: int, generation: int) -> None:
        """A process has told of its probes.

        An object's name, where it was loaded, and where its DOF is.
        """

    def helper_removed(self, process: Any, generation: int) -> None:
        """A process takes back what it told under a number."""

    def signalled(self, thread: Any) -> None:
        """A signal is about to be delivered to the current thread where it stands."""

    def again(self, thread: Any, address: int) -> None:
        """The page that emulating the instruction at an address has missed is there.

        The thread will hit it again.
        """

    def uncover(self, thread: Any, address: int) -> None:
        """There is no such page.

        The thread is to run into the fault of the instruction at an address itself.
        """

    def thread_ended(self, thread: Any) -> None:
        """A thread has ended."""

    def system_call(self, thread: Any, name: str, arguments: Sequence[int]) -> None:
        """A system call begins."""

    def system_call_done(self, thread: Any, name: str, result: int) -> None:
        """A system call is over."""
